// Memory outside Go's heap, for what the collector should not walk: a first-class heap, dropped as a whole. Everything
// that C code in the program allocates is served by reheap too.
package main

// #cgo pkg-config: reheap
// #include <reheap/reheap.h>
// #include <stdlib.h>
import "C"

import (
	"os"
	"unsafe"
)

// Heap is for any number of goroutines: a lock serialises them. (Not rh_heap_create_bound's: it belongs to a thread, and
// goroutines change theirs.) Its memory is not the collector's: it must hold no Go pointers, and is gone with the heap.
type Heap struct{ heap *C.rh_heap }

func NewHeap() Heap { return Heap{C.rh_heap_create()} }

// Bytes are zero. Nil where there is no memory.
func (h Heap) Bytes(count int) []byte {
	block := C.rh_heap_calloc(h.heap, 1, C.size_t(count))
	if block == nil {
		return nil
	}
	return unsafe.Slice((*byte)(block), count)
}

func (h Heap) Destroy() { C.rh_heap_destroy(h.heap) }

func main() {
	heap := NewHeap()
	total := 0
	for i := 0; i < 100000; i++ {
		block := heap.Bytes(64)
		block[0] = 1
		total += int(block[0])
	}
	heap.Destroy()
	block := C.malloc(100)
	served := bool(C.rh_owns(block))
	C.free(block)
	println(total, "blocks; C's malloc is reheap's:", served)
	if !served {
		os.Exit(1)
	}
}
