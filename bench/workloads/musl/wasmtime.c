/* Wasmtime, which is made by Rust: each thread compiles a module of WebAssembly and calls what it exports, each time in
 * an engine of its own. The declarations are those of WebAssembly's C API that are needed here. */
#include <stdint.h>
#include <string.h>

#include "crew.h"

typedef struct {
  size_t size;
  void* data;
} vector; /* of bytes, values or exports */

typedef struct {
  uint8_t kind; /* 0: a number of 32 bits */
  union {
    int32_t number;
    uint64_t widest;
  } of;
} value;

extern void* wasm_engine_new(void);
extern void wasm_engine_delete(void* engine);
extern void* wasm_store_new(void* engine);
extern void wasm_store_delete(void* store);
extern void* wasm_module_new(void* store, const vector* code);
extern void wasm_module_delete(void* module);
extern void* wasm_instance_new(void* store, const void* module, const vector* imports, void** trap);
extern void wasm_instance_exports(const void* instance, vector* exports);
extern void wasm_instance_delete(void* instance);
extern void wasm_extern_vec_delete(vector* exports);
extern void* wasm_extern_as_func(void* export);
extern void* wasm_func_call(const void* function, const vector* arguments, vector* results);
extern void* wasmtime_wat2wasm(const char* text, size_t length, vector* code);
extern void wasm_byte_vec_delete(vector* code);

enum { kFunctions = 100, kLongest = 300, kArgument = 12, kFibonacci = 144 };

static void make_code(vector* code) {
  static const char kFunction[] =
      "(func $f%d (export \"f%d\") (param i32) (result i32)"
      " local.get 0 i32.const 2 i32.lt_s if (result i32) local.get 0 else"
      " local.get 0 i32.const 1 i32.sub call $f%d local.get 0 i32.const 2 i32.sub call $f%d i32.add end)\n";
  char* text = malloc(kFunctions * kLongest);
  char* end = text + sprintf(text, "(module\n");
  for (int at = 0; at < kFunctions; ++at) end += sprintf(end, kFunction, at, at, at, at);
  strcpy(end, ")");
  need(wasmtime_wat2wasm(text, strlen(text), code) == NULL, "the module's text");
  free(text);
}

static void compile_and_call(const vector* code) {
  void* engine = wasm_engine_new();
  void* store = wasm_store_new(engine);
  void* module = wasm_module_new(store, code);
  need(module != NULL, "the module");
  vector none = {0, NULL}, exports;
  void* trap = NULL;
  void* instance = wasm_instance_new(store, module, &none, &trap);
  need(instance != NULL && trap == NULL, "the instance");
  wasm_instance_exports(instance, &exports);
  need(exports.size == kFunctions, "what it exports");
  for (size_t at = 0; at < exports.size; ++at) {
    value argument = {.kind = 0, .of.widest = 0}, result = {.kind = 0, .of.widest = 0};
    argument.of.number = kArgument;
    vector arguments = {1, &argument}, results = {1, &result};
    void* function = wasm_extern_as_func(((void**)exports.data)[at]);
    need(wasm_func_call(function, &arguments, &results) == NULL && result.of.number == kFibonacci, "a result");
  }
  wasm_extern_vec_delete(&exports);
  wasm_instance_delete(instance);
  wasm_module_delete(module);
  wasm_store_delete(store);
  wasm_engine_delete(engine);
}

static void* work(void* unused) {
  vector code;
  make_code(&code);
  for (int round = 0; round < g_amount; ++round) compile_and_call(&code);
  wasm_byte_vec_delete(&code);
  return unused;
}

int main(int count, char** words) { return run_crew(count, words, 20, work); }
