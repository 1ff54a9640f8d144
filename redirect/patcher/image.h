// A DLL as the loader has mapped it: its exports and where its functions lie.
#pragma once

#include <cstddef>
#include <cstdint>

#include "range.h"
#include "redirect/pe/image.h"

namespace rh::redirect {

class Image {
 public:
  explicit Image(const void* base);

  // False when there is no PE image of this process's kind.
  bool valid() const { return whole_.end != 0; }
  Range whole() const { return whole_; }

  // The code exported by this name. NULL when there is none, when it is data, or when another DLL has it.
  uint8_t* function(const char* name) const;

  // From `entry` to where its function has surely ended: where the unwinder's table has the next begin, or with the
  // section.
  Range extent(const uint8_t* entry) const;

 private:
  template <typename T> const T* at(uint32_t address) const {
    return reinterpret_cast<const T*>(whole_.begin + address);
  }
  Range code_section(uintptr_t address) const;
  uint32_t export_address(const char* name) const;

  pe::Image headers_;
  Range whole_;
};

}  // namespace rh::redirect
