/** Path of the command for this system. Throws where its package is not installed. */
export function command(): string;
/** Path of the library that LD_PRELOAD takes (Windows: of the DLL). Throws where its package is not installed. */
export function library(options?: { hardened?: boolean }): string;
