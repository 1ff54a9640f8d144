/* Asks for the segment heap in its manifest: the tree of resources as a compiler of them writes it. Ends with 42. */

__asm__(".section .rsrc, \"dr\"\n"
        "tree:\n"
        "  .long 0, 0, 0; .short 0, 1; .long 24, 0x80000018\n"   /* manifests */
        "  .long 0, 0, 0; .short 0, 1; .long 1, 0x80000030\n"    /* of the program */
        "  .long 0, 0, 0; .short 0, 1; .long 1033, 0x00000048\n" /* in English */
        "  .rva text; .long end - text, 0, 0\n"
        "text:\n"
        "  .ascii \"<assembly xmlns='urn:schemas-microsoft-com:asm.v1' manifestVersion='1.0'>\"\n"
        "  .ascii \"<application xmlns='urn:schemas-microsoft-com:asm.v3'><windowsSettings>\"\n"
        "  .ascii \"<heapType xmlns='http://schemas.microsoft.com/SMI/2020/WindowsSettings'>SegmentHeap</heapType>\"\n"
        "  .ascii \"</windowsSettings></application></assembly>\"\n"
        "end:\n"
        ".text\n");

unsigned long start(void) { return 42; }
