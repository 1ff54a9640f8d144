#include "witness/symbols.h"

#include <stdint.h>
#include <string.h>

typedef struct {
  const ElfW(Sym) * symbols;
  const char* names;
  const uint32_t* hash; /* DT_GNU_HASH: see binutils, "elf: GNU hash section" */
} Tables;

/* The loader writes addresses over the offsets in most objects, not in the kernel's own. */
static const void* at(const struct link_map* object, ElfW(Addr) value) {
  return (const void*)(value < object->l_addr ? value + object->l_addr : value);
}

static Tables tables_of(const struct link_map* object) {
  Tables tables = {NULL, NULL, NULL};
  for (const ElfW(Dyn)* entry = object->l_ld; entry && entry->d_tag != DT_NULL; entry++) {
    if (entry->d_tag == DT_SYMTAB) tables.symbols = at(object, entry->d_un.d_ptr);
    if (entry->d_tag == DT_STRTAB) tables.names = at(object, entry->d_un.d_ptr);
    if (entry->d_tag == DT_GNU_HASH) tables.hash = at(object, entry->d_un.d_ptr);
  }
  return tables;
}

static uint32_t hash_of(const char* name) {
  uint32_t hash = 5381;
  for (; *name; name++) hash = hash * 33 + (unsigned char)*name;
  return hash;
}

/* The table is a header of four words, a filter, the buckets, and for each symbol its hash, whose lowest bit ends the
 * bucket. A program linked to fixed addresses that takes the address of a function has it there too, undefined. */
int object_defines(const struct link_map* object, const char* name) {
  Tables tables = tables_of(object);
  if (!tables.symbols || !tables.names || !tables.hash) return 0;
  uint32_t buckets = tables.hash[0], first = tables.hash[1], filter_words = tables.hash[2];
  const uint32_t* bucket = tables.hash + 4 + filter_words * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
  const uint32_t* hashes = bucket + buckets;
  uint32_t wanted = hash_of(name), at_symbol = buckets ? bucket[wanted % buckets] : 0;
  if (at_symbol < first) return 0;
  for (;; at_symbol++) {
    uint32_t hash = hashes[at_symbol - first];
    const ElfW(Sym)* symbol = tables.symbols + at_symbol;
    if ((hash | 1) == (wanted | 1) && strcmp(tables.names + symbol->st_name, name) == 0)
      return symbol->st_shndx != SHN_UNDEF;
    if (hash & 1) return 0;
  }
}
