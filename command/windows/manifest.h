// What a program asks of Windows in its manifest.
#pragma once

#include "redirect/pe/image.h"

#include <string>

namespace rh::command {

// The manifest in the program's resources, or "" when it has none, or one that cannot be read.
std::string manifest_of(const pe::Image& image);

// The kind of heap that a manifest asks for (heapType: "SegmentHeap"), or "" when it leaves that to Windows.
std::string heap_type_in(const std::string& manifest);

}  // namespace rh::command
