/* Lua: each thread has an interpreter, whose program makes tables, closures and strings and looks at what it gets. */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "crew.h"

static const char kProgram[] =
    "local amount = ...\n"
    "local function tree(depth) if depth == 0 then return {} end return {tree(depth - 1), tree(depth - 1)} end\n"
    "local function count(t) if t[1] == nil then return 1 end return 1 + count(t[1]) + count(t[2]) end\n"
    "for round = 1, amount do\n"
    "  assert(count(tree(10)) == 2047)\n"
    "  local words, sums = {}, {}\n"
    "  for at = 1, 2000 do words[at] = ('%d-%s'):format(at, ('x'):rep(at % 50)) end\n"
    "  local text = table.concat(words, ' ')\n"
    "  for number, tail in text:gmatch('(%d+)%-(x*)') do sums[#tail] = (sums[#tail] or 0) + tonumber(number) end\n"
    "  local sum = 0\n"
    "  for _, part in pairs(sums) do sum = sum + part end\n"
    "  assert(sum == 2001000, sum)\n"
    "  local steps = {}\n"
    "  for at = 1, 500 do steps[at] = function(value) return value + at end end\n"
    "  local value = 0\n"
    "  for _, step in ipairs(steps) do value = step(value) end\n"
    "  assert(value == 125250)\n"
    "  local whole = text:gsub('%d', '<%0>'):upper():reverse()\n"
    "  assert(#whole > 2 * #words and whole:find('>9<'))\n"
    "end\n";

static void* work(void* unused) {
  (void)unused;
  lua_State* state = luaL_newstate();
  need(state != NULL, "an interpreter");
  luaL_openlibs(state);
  need(luaL_loadstring(state, kProgram) == LUA_OK, "the program");
  lua_pushinteger(state, g_amount);
  if (lua_pcall(state, 1, 0, 0) != LUA_OK) need(0, lua_tostring(state, -1));
  lua_close(state);
  return NULL;
}

int main(int count, char** words) { return run_crew(count, words, 150, work); }
