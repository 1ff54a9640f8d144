/* A C runtime made for a test: with DEBUG_HEAP one with a header before every block, without it one with a function too
 * short to be replaced. It stands on the process's heap alone. */
#include <stdint.h>
#include <windows.h>

#define NOINLINE __attribute__((noinline))

/* No call of the system at the very beginning of malloc: that could not be moved. */
static HANDLE heap(void) {
  static HANDLE known;
  if (known == NULL) known = GetProcessHeap();
  return known;
}

void* _malloc_base(size_t size) { return HeapAlloc(heap(), 0, size); }
void _free_base(void* block) { HeapFree(heap(), 0, block); }

char* duplicate(const char* text);
void* zeroed(size_t count, size_t size);
void* malloc(size_t size);

static void* set(void* block, int value, size_t size) {
  volatile unsigned char* bytes = block;
  while (size-- != 0) bytes[size] = (unsigned char)value;
  return block;
}

char* duplicate(const char* text) {
  size_t size = 0;
  while (text[size++] != 0) {}
  volatile char* copy = malloc(size);
  while (size-- != 0) copy[size] = text[size];
  return (char*)copy;
}

void* zeroed(size_t count, size_t size) { return set(malloc(count * size), 0, count * size); }

#ifdef DEBUG_HEAP

enum { kLive = 0x11223344, kFreed = 0x55667788, kNormal = 1 };

typedef struct {
  uint32_t state;
  int type;
  size_t size;
  size_t unused[2];
} Header;

static LONG live, errors;
int fake_live(void) { return live; }
int fake_errors(void) { return errors; }

static Header* header_of(const void* block, int type) {
  Header* header = (Header*)block - 1;
  if (header->state != kLive || (type != 0 && header->type != type)) InterlockedIncrement(&errors);
  return header;
}

NOINLINE void* _malloc_dbg(size_t size, int type, const char* file, int line) {
  (void)file, (void)line;
  Header* header = _malloc_base(sizeof(Header) + size);
  header->state = kLive;
  header->type = type;
  header->size = size;
  InterlockedIncrement(&live);
  return header + 1;
}

NOINLINE void _free_dbg(void* block, int type) {
  if (block == NULL) return;
  Header* header = header_of(block, type);
  header->state = kFreed;
  InterlockedDecrement(&live);
  _free_base(header);
}

NOINLINE size_t _msize_dbg(void* block, int type) { return header_of(block, type)->size; }

NOINLINE void* _realloc_dbg(void* block, size_t size, int type, const char* file, int line) {
  void* fresh = _malloc_dbg(size, type, file, line);
  if (block == NULL) return fresh;
  size_t present = _msize_dbg(block, type);
  for (size_t i = 0; i < present && i < size; ++i) ((volatile char*)fresh)[i] = ((char*)block)[i];
  _free_dbg(block, type);
  return fresh;
}

NOINLINE void* _aligned_malloc_dbg(size_t size, size_t alignment, const char* file, int line) {
  char* start = _malloc_dbg(size + alignment + sizeof(void*), kNormal, file, line);
  void** block = (void**)(((uintptr_t)start + sizeof(void*) + alignment - 1) & ~(alignment - 1));
  block[-1] = start;
  return block;
}

NOINLINE void _aligned_free_dbg(void* block) {
  if (block != NULL) _free_dbg(((void**)block)[-1], kNormal);
}

void* _aligned_malloc(size_t size, size_t alignment) { return _aligned_malloc_dbg(size, alignment, NULL, 0); }

/* With something to do before the call: a jump alone would make the two one function. */
static volatile int aligned_frees;
void _aligned_free(void* block) {
  ++aligned_frees;
  _aligned_free_dbg(block);
}

int _CrtIsValidHeapPointer(const void* block) { return ((const Header*)block - 1)->state == kLive; }

void* malloc(size_t size) { return _malloc_dbg(size, kNormal, NULL, 0); }
void free(void* block) { _free_dbg(block, kNormal); }
void* realloc(void* block, size_t size) { return _realloc_dbg(block, size, kNormal, NULL, 0); }
size_t _msize(void* block) { return _msize_dbg(block, kNormal); }

#else

void* malloc(size_t size) { return HeapAlloc(heap(), 0, size); }
void free(void* block) { HeapFree(heap(), 0, block); }
void* realloc(void* block, size_t size) { return HeapReAlloc(heap(), 0, block, size); }
size_t _msize(void* block) { return HeapSize(heap(), 0, block); }

#define TEXT_OF(value) TEXT_OF_(value)
#define TEXT_OF_(value) #value
#define SYMBOL(name) TEXT_OF(__USER_LABEL_PREFIX__) name

/* Gives NULL in three bytes; the next function follows at once. */
__asm__(".text\n"
        ".p2align 4\n"
        ".globl " SYMBOL("short_expand") "\n" SYMBOL("short_expand") ":\n"
                                                                     "  xorl %eax, %eax\n"
                                                                     "  ret\n"
                                                                     "  movl $1, %eax\n"
                                                                     "  ret\n");

#endif
