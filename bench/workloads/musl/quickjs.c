/* QuickJS: each thread has a runtime of JavaScript, whose program makes objects, maps, strings and closures. */
#include <quickjs.h>
#include <string.h>

#include "crew.h"

static const char kProgram[] =
    "(amount) => {\n"
    "  const need = (holds) => { if (!holds) throw new Error('wrong'); };\n"
    "  for (let round = 0; round < amount; round++) {\n"
    "    const people = Array.from({length: 2000}, (_, at) => ({id: at, name: `n${at * 7919 % 1009}`, tags: [at % "
    "7]}));\n"
    "    const groups = new Map();\n"
    "    for (const one of people) groups.set(one.name, [...(groups.get(one.name) ?? []), one.id]);\n"
    "    need(groups.size === 1009);\n"
    "    const again = JSON.parse(JSON.stringify(people));\n"
    "    need(again.reduce((sum, one) => sum + one.id, 0) === 1999000);\n"
    "    const words = again.map((one) => one.name.padEnd(one.id % 40, '.')).join(' ').split(' ');\n"
    "    need(words.length === 2000 && words.sort()[0].startsWith('n0'));\n"
    "    need(words.join('').replace(/\\.+/g, '').length > 6000);\n"
    "  }\n"
    "  return amount;\n"
    "}";

static void* work(void* unused) {
  (void)unused;
  JSRuntime* runtime = JS_NewRuntime();
  JSContext* context = runtime != NULL ? JS_NewContext(runtime) : NULL;
  need(context != NULL, "a runtime");
  JSValue program = JS_Eval(context, kProgram, strlen(kProgram), "program", JS_EVAL_TYPE_GLOBAL);
  JSValue amount = JS_NewInt32(context, g_amount);
  JSValue answer = JS_Call(context, program, JS_UNDEFINED, 1, &amount);
  int32_t got = 0;
  need(!JS_IsException(answer) && JS_ToInt32(context, &got, answer) == 0 && got == g_amount, "the answer");
  JS_FreeValue(context, answer);
  JS_FreeValue(context, program);
  JS_FreeContext(context);
  JS_FreeRuntime(runtime);
  return NULL;
}

int main(int count, char** words) { return run_crew(count, words, 60, work); }
