#include "completion.h"

#include "common/joined.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace rh::command {
namespace {

struct Flag {
  std::string name;  // "--stats"
  std::string description;
  std::string value;      // what it takes, or empty
  bool optional = false;  // the value may be left out
};

std::vector<const CLI::App*> subcommands(const CLI::App& command) {
  return command.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<Flag> flags(const CLI::App& command) {
  std::vector<Flag> found;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_lnames().empty()) continue;
    const bool takes_value = option->get_expected_max() > 0;
    found.push_back({"--" + option->get_lnames().front(), option->get_description(),
                     takes_value ? option->get_type_name() : "", option->get_expected_min() == 0});
  }
  return found;
}

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

std::string names_of(const std::vector<Flag>& list) {
  return joined(list, " ", [](const Flag& flag) { return flag.name; });
}

std::string subcommand_names(const CLI::App& command) {
  return joined(subcommands(command), " ", [](const CLI::App* sub) { return sub->get_name(); });
}

constexpr std::string_view bash_script =
    R"(# bash completion of reheap; put it under a name of its own:
#   reheap completion bash > ~/.local/share/bash-completion/completions/reheap
_reheap() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} at
  COMPREPLY=()
  for ((at = 1; at < COMP_CWORD; at++)); do
    if [[ ${COMP_WORDS[at]} == -- ]]; then
      # From here on it is another command's line.
      if declare -F _command_offset >/dev/null; then
        _command_offset $((at + 1))
      elif ((COMP_CWORD == at + 1)); then
        mapfile -t COMPREPLY < <(compgen -c -- "$word")
      else
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
      fi
      return
    fi
  done
  if [[ $before == --library || $before == --stats || $before == --profile ]]; then
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
    return
  fi
  local words
  case ${COMP_WORDS[1]} in
@CASES@    *) words='@COMMANDS@ @FLAGS@' ;;
  esac
  ((COMP_CWORD == 1)) && words='@COMMANDS@ @FLAGS@'
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -o default -F _reheap reheap
)";

// What may follow a subcommand besides its flags.
std::string operands(const CLI::App& command) { return command.get_name() == "completion" ? "bash zsh fish" : "--"; }

std::string bash(const CLI::App& command) {
  std::string cases;
  for (const CLI::App* sub : subcommands(command))
    cases += "    " + sub->get_name() + ") words='" + names_of(flags(*sub)) + " " + operands(*sub) + "' ;;\n";
  std::string script = replaced(std::string(bash_script), "@CASES@", cases);
  script = replaced(script, "@COMMANDS@", subcommand_names(command));
  return replaced(script, "@FLAGS@", names_of(flags(command)));
}

constexpr std::string_view zsh_script = R"(#compdef reheap
# zsh completion of reheap; put it into a folder of $fpath:
#   reheap completion zsh > "${fpath[1]}/_reheap"
_reheap() {
  local separator=${words[(i)--]}
  if ((separator < CURRENT)); then
    # From here on it is another command's line.
    shift separator words
    ((CURRENT -= separator))
    _normal
    return
  fi
  if ((CURRENT == 2)); then
    local -a commands=(
@COMMANDS@    )
    _arguments @FLAGS@ '*: :->command'
    _describe -t commands 'reheap command' commands
    return
  fi
  case ${words[2]} in
@CASES@  esac
}
if [[ ${funcstack[1]} == _reheap ]]; then
  _reheap "$@"
else
  compdef _reheap reheap
fi
)";

// Within '…' of zsh and fish.
std::string single_quoted(const std::string& text) { return "'" + replaced(text, "'", "'\\''") + "'"; }

bool is_file(const Flag& flag) {
  return flag.name == "--library" || flag.name == "--stats" || flag.name == "--profile";
}

std::string zsh_flag(const Flag& flag) {
  std::string description = replaced(replaced(flag.description, "[", "("), "]", ")");
  description = replaced(description, ":", "\\:");
  const char* separator = flag.value.empty() ? "" : flag.optional ? "=-" : "=";
  std::string text = flag.name + separator + "[" + description + "]";
  if (flag.value.empty()) return single_quoted(text);
  const bool file = is_file(flag);
  return single_quoted(text + (flag.optional ? "::" : ":") + "value:" + (file ? "_files" : ""));
}

std::string zsh_flags(const CLI::App& command) { return joined(flags(command), " ", zsh_flag); }

std::string zsh(const CLI::App& command) {
  std::string names, cases;
  for (const CLI::App* sub : subcommands(command)) {
    names += "      " + single_quoted(sub->get_name() + ":" + replaced(sub->get_description(), ":", "\\:")) + "\n";
    const std::string operand = sub->get_name() == "completion" ? "'2:shell:(bash zsh fish)'" : "'*: :(--)'";
    cases += "  " + sub->get_name() + ") _arguments " + zsh_flags(*sub) + " " + operand + " ;;\n";
  }
  std::string script = replaced(std::string(zsh_script), "@CASES@", cases);
  script = replaced(script, "@COMMANDS@", names);
  return replaced(script, "@FLAGS@", zsh_flags(command));
}

constexpr std::string_view fish_script = R"(# fish completion of reheap:
#   reheap completion fish > ~/.config/fish/completions/reheap.fish
function __reheap_before_program
    not contains -- -- (commandline -opc)
end
function __reheap_program
    # What follows the --: another command's line.
    set -l words (commandline -opc) (commandline -ct)
    set -l at (contains -i -- -- $words)
    and complete -C (string join ' ' -- (string escape -- $words[(math $at + 1)..-1]))
end
complete -c reheap -f
complete -c reheap -n 'not __reheap_before_program' -a '(__reheap_program)'
)";

std::string fish_flag(const std::string& condition, const Flag& flag) {
  std::string text = "complete -c reheap -n " + single_quoted(condition) + " -l " + flag.name.substr(2);
  const bool file = is_file(flag);
  if (!flag.value.empty() && !flag.optional) text += file ? " -r -F" : " -x";
  return text + " -d " + single_quoted(flag.description) + "\n";
}

std::string fish(const CLI::App& command) {
  std::string script(fish_script);
  const std::string first = "__fish_use_subcommand";
  for (const Flag& flag : flags(command)) script += fish_flag(first, flag);
  for (const CLI::App* sub : subcommands(command)) {
    const std::string seen = "__fish_seen_subcommand_from " + sub->get_name() + "; and __reheap_before_program";
    script += "complete -c reheap -n " + single_quoted(first) + " -a " + sub->get_name() + " -d " +
              single_quoted(sub->get_description()) + "\n";
    for (const Flag& flag : flags(*sub)) script += fish_flag(seen, flag);
    script += "complete -c reheap -n " + single_quoted(seen) + " -a " + single_quoted(operands(*sub)) + "\n";
  }
  return script;
}

}  // namespace

std::string completion_script(const CLI::App& command, const std::string& shell) {
  if (shell == "bash") return bash(command);
  return shell == "zsh" ? zsh(command) : fish(command);
}

}  // namespace rh::command
