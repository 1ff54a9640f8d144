#include "slabs/slab.h"

namespace rh::slab {

namespace {

constexpr size_t kPage = platform::kPageSize;
constexpr unsigned kPagesInUnit = kUnitSize / kPage;

// Pages of a slab, a bit for each from its start.
using Pages = uint64_t;
static_assert(size_class::kMostUnits.count * kPagesInUnit < 64);
static_assert(kPagesInUnit <= 4, "Span::holes");

Pages holes_of(const Span* slab) {
  Pages holes = 0;
  for (unsigned unit = 0; unit < slab->units; ++unit) holes |= Pages{slab[unit].holes} << (unit * kPagesInUnit);
  return holes;
}

void set_holes(Span* slab, Pages holes) {
  constexpr unsigned kOfUnit = (1u << kPagesInUnit) - 1;
  for (unsigned unit = 0; unit < slab->units; ++unit)
    slab[unit].holes = static_cast<unsigned>(holes >> (unit * kPagesInUnit)) & kOfUnit;
}

// The number of the first page, and after the last.
unsigned first_of(Pages pages) { return static_cast<unsigned>(std::countr_zero(pages)); }
unsigned end_of(Pages pages) { return static_cast<unsigned>(std::bit_width(pages)); }

size_t bytes_in(Pages pages) {
  size_t bytes = 0;
  for (; pages != 0; pages &= pages - 1) bytes += kPage;
  return bytes;
}

// Where a slab's carved blocks lie.
class Layout {
 public:
  explicit Layout(const Span* slab)
      : slab_(slab), start_(g_realm.address(slab)), size_(properties(slab).size), carved_(slab->carved.load()) {}

  unsigned carved() const { return carved_; }
  uintptr_t start() const { return start_; }
  Block* block(unsigned index) const { return reinterpret_cast<Block*>(start_ + index * size_); }

  // False when it is none of them.
  bool find(const Block* block, unsigned* index) const {
    size_t offset = address_of(block) - start_;
    if (offset >= carved_ * size_ || !is_block(slab_, offset)) return false;
    *index = size_class::position(slab_->bin.load(), offset).index;
    return true;
  }

  // The pages that a block has a part of, and the blocks that have a part of a page: from the first to before the end.
  Pages pages_of(unsigned index) const {
    size_t first = index * size_ / kPage, last = (index * size_ + size_ - 1) / kPage;
    return (Pages{2} << last) - (Pages{1} << first);
  }
  unsigned first_on(unsigned page) const { return static_cast<unsigned>(page * kPage / size_); }
  unsigned end_on(unsigned page) const {
    size_t end = divide_up((page + 1) * kPage, size_);
    return end < carved_ ? static_cast<unsigned>(end) : carved_;
  }

  // Whether nothing else will be carved of it.
  bool is_carved(unsigned page) const { return carved_ == capacity(slab_) || (page + 1) * kPage <= carved_ * size_; }

 private:
  const Span* slab_;
  uintptr_t start_;
  size_t size_;
  unsigned carved_;
};

// Which blocks are free.
class FreeBlocks : public BlockSet {
 public:
  FreeBlocks(const Layout& layout, Pages holes) : layout_(layout), holes_(holes) {
    for (unsigned index = 0; holes != 0 && index < layout.carved(); ++index)
      if (layout.pages_of(index) & holes) add(index);
  }

  // False when it is not a list of blocks that are in no other: whoever takes it will say so.
  bool add_list(const Block* first) {
    unsigned index = 0;
    for (const Block* block = first; block != nullptr; block = block->next)
      if (!layout_.find(block, &index) || !add(index)) return false;
    return true;
  }

  // The pages with nothing but such blocks that are no holes yet.
  Pages pages(unsigned count) const {
    Pages pages = 0;
    for (unsigned page = 0; page < count; ++page)
      if (layout_.is_carved(page) && all_free(page)) pages |= Pages{1} << page;
    return pages & ~holes_;
  }

 private:
  static_assert([] {
    for (size_t index = 0; index < size_class::kCount; ++index)
      if (size_class::kProperties[index].capacity > kMost) return false;
    return true;
  }());

  bool all_free(unsigned page) const {
    unsigned first = layout_.first_on(page), end = layout_.end_on(page);
    for (unsigned index = first; index < end; ++index)
      if (!has(index)) return false;
    return first < end;
  }

  const Layout& layout_;
  Pages holes_;
};

// The block the owner freed last: it may be about to link the next to it, so what follows can be taken out of the list
// and it cannot. Where others may see its stores out of order, none of them can.
Block* newest_of(const Span* slab) { return kPlainWords ? *const_cast<Block* const volatile*>(&slab->free) : nullptr; }

// A link as it is where the OS put zeros.
void clear_link(Block* block) { __builtin_memset(static_cast<void*>(&block->next), 0, sizeof(block->next)); }
bool is_link_clear(const Block* block) {
  uintptr_t word;
  __builtin_memcpy(&word, &block->next, sizeof(word));
  return word == 0;
}

// Takes the hollow blocks out of a list. Of each the first word is zero from then on. Whoever writes to free blocks may
// have broken it since it was looked at: it is followed as far as it is one.
unsigned unlink(const Span* slab, const Layout& layout, Link* link, Pages holes) {
  unsigned count = 0, index = 0;
  for (Block* block = *link; block != nullptr && layout.find(block, &index); block = *link) {
    if ((layout.pages_of(index) & holes) == 0) {
      link = &block->next;
      continue;
    }
    *link = block->next;
    clear_link(block);
    note_free(slab, block);
    ++count;
  }
  return count;
}

struct Links {
  Block *first, *last;
  unsigned count;
};

// Links the blocks that have a part of a page, and none of a hole.
Links link(const Span* slab, const Layout& layout, unsigned page, Pages holes) {
  Links links{};
  for (unsigned index = layout.first_on(page), end = layout.end_on(page); index < end; ++index) {
    if (layout.pages_of(index) & holes) continue;
    Block* block = layout.block(index);
    if (RH_UNLIKELY(!is_link_clear(block)))
      fail_broken(slab, "write to a block, or second free of it, when it was free");
    block->mark = mark_of(slab, block);
    if (links.count != 0)
      links.last->next = block;
    else
      links.first = block;
    links.last = block;
    ++links.count;
  }
  return links;
}

// The first page of these is no hole any longer; gives the blocks that are hollow no more.
Links close(Span* slab, const Layout& layout, Pages pages) {
  unsigned page = first_of(pages);
  Pages holes = holes_of(slab) & ~(Pages{1} << page);
  set_holes(slab, holes);
  return link(slab, layout, page, holes);
}

// Whatever is there now is not what was written.
void clear_links(const Layout& layout, unsigned page) {
  for (unsigned index = layout.first_on(page), end = layout.end_on(page); index < end; ++index)
    clear_link(layout.block(index));
}

// Returns the content of the pages; gives those that the OS refused.
Pages purge(const Layout& layout, Pages pages) {
  Pages refused = 0;
  while (pages != 0) {
    Pages run = pages & ~(pages + (Pages{1} << first_of(pages)));
    size_t offset = first_of(run) * kPage, length = end_of(run) * kPage - offset;
    if (!platform::replace_by_zeros(layout.start() + offset, length)) refused |= run;
    pages &= ~run;
  }
  return refused;
}

}  // namespace

size_t punch(Span* slab) {
  if (!may_have_holes()) return 0;
  Layout layout(slab);
  Pages before = holes_of(slab);
  FreeBlocks free(layout, before);
  Block* newest = newest_of(slab);
  Link others = returned(slab);
  if ((newest != nullptr && !free.add_list(newest->next)) || !free.add_list(others)) return 0;
  Pages fresh = free.pages(slab->units * kPagesInUnit);
  if (fresh == 0) return 0;
  set_holes(slab, before | fresh);
  if (newest != nullptr) add(slab->free_count, 0u - unlink(slab, layout, &newest->next, before | fresh));
  add_returned(slab, 0u - unlink(slab, layout, &others, before | fresh));
  set_returned(slab, others);
  Pages refused = purge(layout, fresh);
  for (Pages left = refused; left != 0; left &= left - 1) {
    clear_links(layout, first_of(left));
    Links links = close(slab, layout, left);
    if (links.count == 0) continue;
    add(slab->outstanding, links.count);
    give_back(slab, links.first, links.last, links.count);
  }
  return bytes_in(fresh & ~refused);
}

Taken fill_hole(Span* slab) {
  Layout layout(slab);
  Links links{};
  while (links.count == 0 && has_holes(slab)) links = close(slab, layout, holes_of(slab));
  if (links.count == 0) return {nullptr, false};
  links.last->next = nullptr;
  add(slab->outstanding, links.count);
  return {links.first, false, static_cast<uint16_t>(links.count)};
}

// A list that somebody has broken ends where it no longer is one: whoever takes it will say so.
BlockSet free_blocks_of(const Span* slab, const Block* bin, const Block* other_bin) {
  Layout layout(slab);
  FreeBlocks free(layout, holes_of(slab));
  const Block* const lists[] = {slab->free, returned(slab), bin, other_bin};
  for (const Block* list : lists) free.add_list(list);
  return free;
}

unsigned hollow_blocks(const Span* slab) {
  Pages holes = holes_of(slab);
  Layout layout(slab);
  unsigned count = 0;
  for (unsigned index = 0; holes != 0 && index < layout.carved(); ++index)
    count += (layout.pages_of(index) & holes) != 0;
  return count;
}

}  // namespace rh::slab
