// Events for whoever listens to the provider "reheap". Each says itself what it consists of, as TraceLogging's do: two
// descriptors before the values have the name of the provider and those of the event and its fields.
#include "platform/windows/probes.h"

#include <atomic>

#include "platform/platform.h"

namespace rh::platform {

namespace {

// What tools make of the provider's name.
constexpr GUID kProvider = {0x7b6ed4de, 0xf65a, 0x5aa7, {0x03, 0x5a, 0xff, 0x96, 0xbd, 0x87, 0x4d, 0xc0}};

// Without the zero at the end of what it is made from.
template <size_t kSize> struct Description {
  uint16_t size = sizeof(uint16_t) + kSize - 1;
  char text[kSize - 1] = {};

  explicit constexpr Description(const char (&from)[kSize]) {
    for (size_t at = 0; at != kSize - 1; ++at) text[at] = from[at];
  }
};

// Begins with the event's tags, of which there are none. Each name ends with a zero, and a field's type follows.
#define RH_HEX "\25"
#define RH_NUMBER "\12"
#define RH_TEXT "\2"
constexpr Description kName{"reheap\0"};
constexpr Description kAlloc{"\0Alloc\0Address\0" RH_HEX "Size\0" RH_NUMBER "Weight\0" RH_NUMBER};
constexpr Description kFree{"\0Free\0Address\0" RH_HEX};
constexpr Description kMisuse{"\0Misuse\0Message\0" RH_TEXT "Address\0" RH_HEX};
#undef RH_HEX
#undef RH_NUMBER
#undef RH_TEXT

constexpr UCHAR kSelfDescribing = 11;  // the channel
constexpr UCHAR kError = 2, kVerbose = 5;
constexpr ULONGLONG kOfBlocks = 1, kOfMisuse = 2;  // keywords

constinit EventTracing g_tracing = {};
constinit REGHANDLE g_handle = 0;
constinit std::atomic<bool> g_wanted{false};

void NTAPI on_session(const GUID*, ULONG what, UCHAR, ULONGLONG, ULONGLONG, EVENT_FILTER_DESCRIPTOR*, void*) {
  constexpr ULONG kNobodyWants = 0, kSomebodyWants = 1;
  if (what == kNobodyWants || what == kSomebodyWants) g_wanted.store(what == kSomebodyWants);
}

bool is_wanted() { return g_wanted.load(std::memory_order_relaxed); }

enum : ULONG { kValue = 0, kOfEvent = 1, kOfProvider = 2 };  // what a descriptor is of

EVENT_DATA_DESCRIPTOR descriptor(const void* data, size_t size, ULONG kind) {
  EVENT_DATA_DESCRIPTOR made = {};
  made.Ptr = reinterpret_cast<uintptr_t>(data);
  made.Size = static_cast<ULONG>(size);
  made.Reserved = kind;
  return made;
}

template <size_t kSize> EVENT_DATA_DESCRIPTOR descriptor(const Description<kSize>& description, ULONG kind) {
  return descriptor(&description, description.size, kind);
}

EVENT_DATA_DESCRIPTOR descriptor(const uint64_t& number) { return descriptor(&number, sizeof(number), kValue); }

template <size_t kCount> void write(UCHAR level, ULONGLONG keyword, EVENT_DATA_DESCRIPTOR (&data)[kCount]) {
  KeepLastError keep;
  const EVENT_DESCRIPTOR event = {0, 0, kSelfDescribing, level, 0, 0, keyword};
  g_tracing.write(g_handle, &event, kCount, data);
}

template <class Function> void find(HMODULE module, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(reinterpret_cast<void*>(GetProcAddress(module, name)));
}

}  // namespace

void use_event_tracing(const EventTracing& functions) {
  g_tracing = functions;
  if (g_tracing.add(&kProvider, on_session, nullptr, &g_handle) != ERROR_SUCCESS) g_handle = 0;
}

void prepare() {
  KeepLastError keep;
  const HMODULE system = GetModuleHandleW(L"ntdll.dll");
  EventTracing found = {};
  find(system, "EtwEventRegister", &found.add);
  find(system, "EtwEventWrite", &found.write);
  find(system, "EtwEventUnregister", &found.remove);
  if (found.add != nullptr && found.write != nullptr && found.remove != nullptr) use_event_tracing(found);
}

void forget_probes() {
  if (g_handle != 0) g_tracing.remove(g_handle);
  g_handle = 0;
  g_wanted.store(false);
}

void probe_allocated(const void* block, uint64_t size, uint64_t stands_for) {
  if (!is_wanted()) return;
  const uint64_t address = reinterpret_cast<uintptr_t>(block);
  EVENT_DATA_DESCRIPTOR data[] = {descriptor(kName, kOfProvider), descriptor(kAlloc, kOfEvent), descriptor(address),
                                  descriptor(size), descriptor(stands_for)};
  write(kVerbose, kOfBlocks, data);
}

void probe_freed(const void* block) {
  if (!is_wanted()) return;
  const uint64_t address = reinterpret_cast<uintptr_t>(block);
  EVENT_DATA_DESCRIPTOR data[] = {descriptor(kName, kOfProvider), descriptor(kFree, kOfEvent), descriptor(address)};
  write(kVerbose, kOfBlocks, data);
}

void probe_misuse(const char* message, uintptr_t block) {
  if (!is_wanted()) return;
  const uint64_t address = block;
  EVENT_DATA_DESCRIPTOR data[] = {descriptor(kName, kOfProvider), descriptor(kMisuse, kOfEvent),
                                  descriptor(message, __builtin_strlen(message) + 1, kValue), descriptor(address)};
  write(kError, kOfMisuse, data);
}

}  // namespace rh::platform
