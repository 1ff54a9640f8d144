# Sourced by the smoke tests: installs a build into a place of its own, and moves it, since a packager would.
# Gives $work, an empty folder, and $prefix, where reheap now is.

set -euo pipefail
[[ $# == 1 && -f $1/CMakeCache.txt ]] || { echo "usage: smoke.sh BUILD-FOLDER" >&2; exit 2; }

sources=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$1/integrations/$(basename "$(dirname "$0")")-smoke
prefix="$work/with a space"
rm -rf "$work"
mkdir -p "$work"
"${CMAKE:-cmake}" --install "$1" --prefix "$work/installed" >"$work/install.log"
mv "$work/installed" "$prefix"
