#include "witness/symbols.h"

#include <stdint.h>
#include <string.h>

typedef struct {
  const ElfW(Sym) * symbols;
  const char* names;
  const uint32_t* hash;     /* DT_GNU_HASH: see binutils, "elf: GNU hash section" */
  const uint32_t* old_hash; /* DT_HASH, of the System V ABI; an object may have either */
} Tables;

/* The loader writes addresses over the offsets in most objects, not in the kernel's own. */
static const void* at(const struct link_map* object, ElfW(Addr) value) {
  return (const void*)(value < object->l_addr ? value + object->l_addr : value);
}

static Tables tables_of(const struct link_map* object) {
  Tables tables = {NULL, NULL, NULL, NULL};
  for (const ElfW(Dyn)* entry = object->l_ld; entry && entry->d_tag != DT_NULL; entry++) {
    if (entry->d_tag == DT_SYMTAB) tables.symbols = at(object, entry->d_un.d_ptr);
    if (entry->d_tag == DT_STRTAB) tables.names = at(object, entry->d_un.d_ptr);
    if (entry->d_tag == DT_GNU_HASH) tables.hash = at(object, entry->d_un.d_ptr);
    if (entry->d_tag == DT_HASH) tables.old_hash = at(object, entry->d_un.d_ptr);
  }
  return tables;
}

static uint32_t hash_of(const char* name) {
  uint32_t hash = 5381;
  for (; *name; name++) hash = hash * 33 + (unsigned char)*name;
  return hash;
}

/* A program linked to fixed addresses that takes the address of a function has it there too, undefined. */
static int is_definition(const Tables* tables, uint32_t symbol, const char* name) {
  const ElfW(Sym)* entry = tables->symbols + symbol;
  return entry->st_shndx != SHN_UNDEF && strcmp(tables->names + entry->st_name, name) == 0;
}

/* The table is a header of four words, a filter, the buckets, and for each symbol its hash, whose lowest bit ends the
 * bucket. 0 is no symbol. */
static uint32_t found_by_hash(const Tables* tables, const char* name) {
  uint32_t buckets = tables->hash[0], first = tables->hash[1], filter_words = tables->hash[2];
  const uint32_t* bucket = tables->hash + 4 + filter_words * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
  const uint32_t* hashes = bucket + buckets;
  uint32_t wanted = hash_of(name), at_symbol = buckets ? bucket[wanted % buckets] : 0;
  if (at_symbol < first) return 0;
  for (;; at_symbol++) {
    uint32_t hash = hashes[at_symbol - first];
    if ((hash | 1) == (wanted | 1) && is_definition(tables, at_symbol, name)) return at_symbol;
    if (hash & 1) return 0;
  }
}

/* Two words, of which the second is the number of symbols: they are few enough to look at them all. */
static uint32_t found_by_old_hash(const Tables* tables, const char* name) {
  for (uint32_t symbol = 1; symbol < tables->old_hash[1]; symbol++)
    if (is_definition(tables, symbol, name)) return symbol;
  return 0;
}

static uint32_t find(const Tables* tables, const char* name) {
  if (!tables->symbols || !tables->names) return 0;
  if (tables->hash) return found_by_hash(tables, name);
  return tables->old_hash ? found_by_old_hash(tables, name) : 0;
}

int object_defines(const struct link_map* object, const char* name) {
  const Tables tables = tables_of(object);
  return find(&tables, name) != 0;
}

void* function_of(const struct link_map* object, const char* name) {
  const Tables tables = tables_of(object);
  const uint32_t symbol = find(&tables, name);
  if (!symbol || ELF32_ST_TYPE(tables.symbols[symbol].st_info) != STT_FUNC) return NULL;
  return (void*)(object->l_addr + tables.symbols[symbol].st_value);
}
