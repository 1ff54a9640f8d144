#include "opcodes_x86.h"

namespace rh::redirect::x86 {

namespace {

constexpr Row kOneByte[] = {
    {0x00, 0x03, kAnyPrefix, kAll, kAll},  // the eight of add to cmp (normalised by the decoder)
    {0x04, 0x04, kAnyPrefix, 0, 0, Immediate::byte},
    {0x05, 0x05, kAnyPrefix, 0, 0, Immediate::half},
    {0x06, 0x07, kAnyPrefix, 0, 0, Immediate::none, kIn32},  // push and pop segments
    {0x0E, 0x0E, kAnyPrefix, 0, 0, Immediate::none, kIn32},
    {0x16, 0x17, kAnyPrefix, 0, 0, Immediate::none, kIn32},
    {0x1E, 0x1F, kAnyPrefix, 0, 0, Immediate::none, kIn32},
    {0x27, 0x27, kAnyPrefix, 0, 0, Immediate::none, kIn32},     // daa
    {0x2F, 0x2F, kAnyPrefix, 0, 0, Immediate::none, kIn32},     // das
    {0x37, 0x37, kAnyPrefix, 0, 0, Immediate::none, kIn32},     // aaa
    {0x3F, 0x3F, kAnyPrefix, 0, 0, Immediate::none, kIn32},     // aas
    {0x40, 0x4F, kAnyPrefix, 0, 0, Immediate::none, kIn32},     // inc, dec
    {0x50, 0x5F},                                               // push, pop
    {0x60, 0x61, kAnyPrefix, 0, 0, Immediate::none, kIn32},     // pusha, popa
    {0x62, 0x62, kAnyPrefix, kAll, 0, Immediate::none, kIn32},  // bound
    {0x63, 0x63, kAnyPrefix, kAll, kAll},                       // arpl, movsxd
    {0x68, 0x68, kAnyPrefix, 0, 0, Immediate::half},            // push
    {0x69, 0x69, kAnyPrefix, kAll, kAll, Immediate::half},      // imul
    {0x6A, 0x6A, kAnyPrefix, 0, 0, Immediate::byte},            // push
    {0x6B, 0x6B, kAnyPrefix, kAll, kAll, Immediate::byte},      // imul
    {0x6C, 0x6F},                                               // ins, outs
    {0x70, 0x7F, kAnyPrefix, 0, 0, Immediate::short_branch},    // jcc
    {0x80, 0x80, kAnyPrefix, kAll, kAll, Immediate::byte},      // group 1
    {0x81, 0x81, kAnyPrefix, kAll, kAll, Immediate::half},
    {0x82, 0x82, kAnyPrefix, kAll, kAll, Immediate::byte, kIn32},
    {0x83, 0x83, kAnyPrefix, kAll, kAll, Immediate::byte},
    {0x84, 0x8B, kAnyPrefix, kAll, kAll},                           // test, xchg, mov
    {0x8C, 0x8C, kAnyPrefix, 0x3F, 0x3F},                           // mov from a segment register
    {0x8D, 0x8D, kAnyPrefix, kAll},                                 // lea
    {0x8E, 0x8E, kAnyPrefix, 0x3D, 0x3D},                           // mov to a segment register, but cs
    {0x8F, 0x8F, kAnyPrefix, 0x01, 0x01},                           // pop; the rest is XOP
    {0x90, 0x99},                                                   // xchg, cbw, cwd
    {0x9A, 0x9A, kAnyPrefix, 0, 0, Immediate::far_address, kIn32},  // call
    {0x9B, 0x9F},                                                   // fwait, pushf, popf, sahf, lahf
    {0xA0, 0xA3, kAnyPrefix, 0, 0, Immediate::near_address},        // mov
    {0xA4, 0xA7},                                                   // movs, cmps
    {0xA8, 0xA8, kAnyPrefix, 0, 0, Immediate::byte},                // test
    {0xA9, 0xA9, kAnyPrefix, 0, 0, Immediate::half},
    {0xAA, 0xAF},                                     // stos, lods, scas
    {0xB0, 0xB7, kAnyPrefix, 0, 0, Immediate::byte},  // mov
    {0xB8, 0xBF, kAnyPrefix, 0, 0, Immediate::full},
    {0xC0, 0xC1, kAnyPrefix, kAll, kAll, Immediate::byte},  // group 2
    {0xC2, 0xC2, kAnyPrefix, 0, 0, Immediate::word},        // ret
    {0xC3, 0xC3},
    {0xC4, 0xC5, kAnyPrefix, kAll, 0, Immediate::none, kIn32},  // les, lds
    {0xC6, 0xC6, kAnyPrefix, 0x01, 0x01, Immediate::byte},      // mov
    {0xC7, 0xC7, kAnyPrefix, 0x01, 0x01, Immediate::half},
    {0xC6, 0xC6, kAnyPrefix, 0xF8, 0xF8, Immediate::byte, kBoth | kExact},         // xabort
    {0xC7, 0xC7, kAnyPrefix, 0xF8, 0xF8, Immediate::near_branch, kBoth | kExact},  // xbegin
    {0xC8, 0xC8, kAnyPrefix, 0, 0, Immediate::frame},                              // enter
    {0xC9, 0xC9},                                                                  // leave
    {0xCA, 0xCA, kAnyPrefix, 0, 0, Immediate::word},                               // ret
    {0xCB, 0xCC},                                                                  // ret, int3
    {0xCD, 0xCD, kAnyPrefix, 0, 0, Immediate::byte},                               // int
    {0xCE, 0xCE, kAnyPrefix, 0, 0, Immediate::none, kIn32},                        // into
    {0xCF, 0xCF},                                                                  // iret
    {0xD0, 0xD3, kAnyPrefix, kAll, kAll},                                          // group 2
    {0xD4, 0xD5, kAnyPrefix, 0, 0, Immediate::byte, kIn32},                        // aam, aad
    {0xD6, 0xD6, kAnyPrefix, 0, 0, Immediate::none, kIn32},                        // salc
    {0xD7, 0xD7},                                                                  // xlat
    {0xD8, 0xD8, kAnyPrefix, kAll, kAll},                                          // the x87's
    {0xD9, 0xD9, kAnyPrefix, 0xFD, 0xCB},
    {0xD9, 0xD9, kAnyPrefix, 0xD0, 0xD0, Immediate::none, kBoth | kExact},  // fnop
    {0xD9, 0xD9, kAnyPrefix, 0xE0, 0xE1, Immediate::none, kBoth | kExact},  // fchs, fabs
    {0xD9, 0xD9, kAnyPrefix, 0xE4, 0xE5, Immediate::none, kBoth | kExact},  // ftst, fxam
    {0xD9, 0xD9, kAnyPrefix, 0xE8, 0xEE, Immediate::none, kBoth | kExact},  // constants
    {0xDA, 0xDA, kAnyPrefix, kAll, 0x0F},
    {0xDA, 0xDA, kAnyPrefix, 0xE9, 0xE9, Immediate::none, kBoth | kExact},  // fucompp
    {0xDB, 0xDB, kAnyPrefix, 0xAF, 0x6F},
    {0xDB, 0xDB, kAnyPrefix, 0xE0, 0xE4, Immediate::none, kBoth | kExact},  // fnclex, fninit and what the 8087 knew
    {0xDC, 0xDC, kAnyPrefix, kAll, kAll},
    {0xDD, 0xDD, kAnyPrefix, 0xDF, 0x3F},
    {0xDE, 0xDE, kAnyPrefix, kAll, 0xF7},
    {0xDE, 0xDE, kAnyPrefix, 0xD9, 0xD9, Immediate::none, kBoth | kExact},  // fcompp
    {0xDF, 0xDF, kAnyPrefix, kAll, 0x6F},
    {0xDF, 0xDF, kAnyPrefix, 0xE0, 0xE0, Immediate::none, kBoth | kExact},  // fnstsw
    {0xE0, 0xE3, kAnyPrefix, 0, 0, Immediate::short_branch},                // loop, jcxz
    {0xE4, 0xE7, kAnyPrefix, 0, 0, Immediate::byte},                        // in, out
    {0xE8, 0xE9, kAnyPrefix, 0, 0, Immediate::near_branch},                 // call, jmp
    {0xEA, 0xEA, kAnyPrefix, 0, 0, Immediate::far_address, kIn32},          // jmp
    {0xEB, 0xEB, kAnyPrefix, 0, 0, Immediate::short_branch},
    {0xEC, 0xEF},                                           // in, out
    {0xF1, 0xF1},                                           // int1
    {0xF4, 0xF5},                                           // hlt, cmc
    {0xF6, 0xF6, kAnyPrefix, 0x03, 0x03, Immediate::byte},  // test
    {0xF6, 0xF6, kAnyPrefix, 0xFC, 0xFC},                   // the rest of group 3
    {0xF7, 0xF7, kAnyPrefix, 0x03, 0x03, Immediate::half},
    {0xF7, 0xF7, kAnyPrefix, 0xFC, 0xFC},
    {0xF8, 0xFD},                          // clc to std
    {0xFE, 0xFE, kAnyPrefix, 0x03, 0x03},  // inc, dec
    {0xFF, 0xFF, kAnyPrefix, 0x7F, 0x57},  // group 5
};

constexpr Row kTwoBytes[] = {
    {0x00, 0x00, kAnyPrefix, 0x3F, 0x3F},                                   // group 6
    {0x01, 0x01, kAnyPrefix, 0xDF, 0x50},                                   // group 7
    {0x01, 0x01, kF3, 0x20},                                                // rstorssp
    {0x01, 0x01, kNone, 0xD0, 0xD1, Immediate::none, kBoth | kExact},       // xgetbv, xsetbv
    {0x01, 0x01, kNone, 0xD5, 0xD6, Immediate::none, kBoth | kExact},       // xend, xtest
    {0x01, 0x01, kNone, 0xD8, 0xDF, Immediate::none, kBoth | kExact},       // for virtual machines of AMD's
    {0x01, 0x01, kAnyPrefix, 0xF9, 0xF9, Immediate::none, kBoth | kExact},  // rdtscp
    {0x02, 0x03, kAnyPrefix, kAll, kAll},                                   // lar, lsl
    {0x05, 0x09},                                                           // syscall to wbinvd
    {0x0B, 0x0B},                                                           // ud2
    {0x0D, 0x0D, kAnyPrefix, kAll, kAll},                                   // prefetch
    {0x0E, 0x0E},                                                           // femms
    {0x10, 0x11, kAnyPrefix, kAll, kAll},                                   // movups
    {0x12, 0x12, kNone | kF3 | kF2, kAll, kAll},                            // movlps, movhlps
    {0x12, 0x12, k66, kAll},
    {0x13, 0x13, kPlain66, kAll},
    {0x14, 0x15, kPlain66, kAll, kAll},     // unpcklps
    {0x16, 0x16, kNone | kF3, kAll, kAll},  // movhps, movlhps
    {0x16, 0x16, k66, kAll},
    {0x17, 0x17, kPlain66, kAll},
    {0x18, 0x19, kAnyPrefix, kAll, kAll},  // prefetch, and no operations
    {0x1C, 0x1F, kAnyPrefix, kAll, kAll},
    {0x28, 0x29, kPlain66, kAll, kAll},                     // movaps
    {0x2A, 0x2A, kAnyPrefix, kAll, kAll},                   // cvtpi2ps
    {0x2B, 0x2B, kAnyPrefix, kAll},                         // movntps
    {0x2C, 0x2D, kAnyPrefix, kAll, kAll},                   // cvttps2pi
    {0x2E, 0x2F, kPlain66, kAll, kAll},                     // ucomiss
    {0x30, 0x35},                                           // wrmsr to sysexit
    {0x37, 0x37, kNone},                                    // getsec
    {0x40, 0x4F, kAnyPrefix, kAll, kAll},                   // cmovcc
    {0x50, 0x50, kPlain66, 0, kAll},                        // movmskps
    {0x51, 0x51, kAnyPrefix, kAll, kAll},                   // sqrtps
    {0x52, 0x53, kNone | kF3, kAll, kAll},                  // rsqrtps, rcpps
    {0x54, 0x57, kPlain66, kAll, kAll},                     // andps
    {0x58, 0x5A, kAnyPrefix, kAll, kAll},                   // addps, mulps, cvtps2pd
    {0x5B, 0x5B, kPlain66 | kF3, kAll, kAll},               // cvtdq2ps
    {0x5C, 0x5F, kAnyPrefix, kAll, kAll},                   // subps to maxps
    {0x60, 0x6B, kPlain66, kAll, kAll},                     // punpcklbw to packssdw
    {0x6C, 0x6D, k66, kAll, kAll},                          // punpcklqdq
    {0x6E, 0x6E, kPlain66, kAll, kAll},                     // movd
    {0x6F, 0x6F, kPlain66 | kF3, kAll, kAll},               // movdqa
    {0x70, 0x70, kAnyPrefix, kAll, kAll, Immediate::byte},  // pshufd
    {0x71, 0x72, kPlain66, 0, 0x54, Immediate::byte},       // groups 12 and 13
    {0x73, 0x73, kNone, 0, 0x44, Immediate::byte},          // group 14
    {0x73, 0x73, k66, 0, 0xCC, Immediate::byte},
    {0x74, 0x76, kPlain66, kAll, kAll},           // pcmpeqb
    {0x77, 0x77, kNone},                          // emms
    {0x78, 0x78, kNone, kAll, kAll},              // vmread
    {0x78, 0x78, k66, 0, 0x01, Immediate::word},  // extrq
    {0x78, 0x78, kF2, 0, kAll, Immediate::word},  // insertq
    {0x79, 0x79, kNone, kAll, kAll},              // vmwrite
    {0x79, 0x79, k66 | kF2, 0, kAll},
    {0x7C, 0x7D, k66 | kF2, kAll, kAll},                     // haddpd
    {0x7E, 0x7F, kPlain66 | kF3, kAll, kAll},                // movd, movdqa
    {0x80, 0x8F, kAnyPrefix, 0, 0, Immediate::near_branch},  // jcc
    {0x90, 0x9F, kAnyPrefix, kAll, kAll},                    // setcc
    {0xA0, 0xA2},                                            // push and pop fs, cpuid
    {0xA3, 0xA3, kAnyPrefix, kAll, kAll},                    // bt
    {0xA4, 0xA4, kAnyPrefix, kAll, kAll, Immediate::byte},   // shld
    {0xA5, 0xA5, kAnyPrefix, kAll, kAll},
    {0xA8, 0xAA},                                           // push and pop gs, rsm
    {0xAB, 0xAB, kAnyPrefix, kAll, kAll},                   // bts
    {0xAC, 0xAC, kAnyPrefix, kAll, kAll, Immediate::byte},  // shrd
    {0xAD, 0xAD, kAnyPrefix, kAll, kAll},
    {0xAE, 0xAE, kNone, kAll, 0xE0},  // group 15
    {0xAE, 0xAE, k66, 0xC0, 0xC0},
    {0xAE, 0xAE, kF3, 0x50, 0x70},
    {0xAE, 0xAE, kF3, 0, 0x0F, Immediate::none, kIn64},     // rdfsbase
    {0xAE, 0xAE, kF2, 0, 0x40},                             // umwait
    {0xAF, 0xB1, kAnyPrefix, kAll, kAll},                   // imul, cmpxchg
    {0xB2, 0xB2, kAnyPrefix, kAll},                         // lss
    {0xB3, 0xB3, kAnyPrefix, kAll, kAll},                   // btr
    {0xB4, 0xB5, kAnyPrefix, kAll},                         // lfs, lgs
    {0xB6, 0xB7, kAnyPrefix, kAll, kAll},                   // movzx
    {0xB8, 0xB8, kF3, kAll, kAll},                          // popcnt
    {0xB9, 0xB9, kAnyPrefix, kAll, kAll},                   // ud1
    {0xBA, 0xBA, kAnyPrefix, 0xF0, 0xF0, Immediate::byte},  // group 8
    {0xBB, 0xC1, kAnyPrefix, kAll, kAll},                   // btc, bsf, bsr, movsx, xadd
    {0xC2, 0xC2, kAnyPrefix, kAll, kAll, Immediate::byte},  // cmpps
    {0xC3, 0xC3, kNone, kAll},                              // movnti
    {0xC4, 0xC4, kPlain66, kAll, kAll, Immediate::byte},    // pinsrw
    {0xC5, 0xC5, kPlain66, 0, kAll, Immediate::byte},       // pextrw
    {0xC6, 0xC6, kPlain66, kAll, kAll, Immediate::byte},    // shufps
    {0xC7, 0xC7, kNone, 0xFA, 0xC0},                        // group 9
    {0xC7, 0xC7, k66, 0x42, 0xC0},
    {0xC7, 0xC7, kF3, 0x42, 0x80},
    {0xC7, 0xC7, kF3, 0, 0x40, Immediate::none, kIn64},  // senduipi
    {0xC7, 0xC7, kF2, 0x02},
    {0xC8, 0xCF},                         // bswap
    {0xD0, 0xD0, k66 | kF2, kAll, kAll},  // addsubpd
    {0xD1, 0xD5, kPlain66, kAll, kAll},   // psrlw to pmullw
    {0xD6, 0xD6, k66, kAll, kAll},        // movq
    {0xD6, 0xD6, kF3 | kF2, 0, kAll},
    {0xD7, 0xD7, kPlain66, 0, kAll},            // pmovmskb
    {0xD8, 0xE5, kPlain66, kAll, kAll},         // psubusb to pmulhw
    {0xE6, 0xE6, k66 | kF3 | kF2, kAll, kAll},  // cvttpd2dq
    {0xE7, 0xE7, kPlain66, kAll},               // movntq
    {0xE8, 0xEF, kPlain66, kAll, kAll},         // psubsb to pxor
    {0xF0, 0xF0, kF2, kAll},                    // lddqu
    {0xF1, 0xF6, kPlain66, kAll, kAll},         // psllw to psadbw
    {0xF7, 0xF7, kPlain66, 0, kAll},            // maskmovq
    {0xF8, 0xFE, kPlain66, kAll, kAll},         // psubb to paddd
    {0xFF, 0xFF, kAnyPrefix, kAll, kAll},       // ud0
};

constexpr Row kAt0f38[] = {
    {0x00, 0x0B, kPlain66, kAll, kAll},   // pshufb to pmulhrsw
    {0x10, 0x10, k66, kAll, kAll},        // pblendvb
    {0x14, 0x15, k66, kAll, kAll},        // blendvps
    {0x17, 0x17, k66, kAll, kAll},        // ptest
    {0x1C, 0x1E, kPlain66, kAll, kAll},   // pabsb
    {0x20, 0x25, k66, kAll, kAll},        // pmovsxbw
    {0x28, 0x29, k66, kAll, kAll},        // pmuldq, pcmpeqq
    {0x2A, 0x2A, k66, kAll},              // movntdqa
    {0x2B, 0x2B, k66, kAll, kAll},        // packusdw
    {0x30, 0x35, k66, kAll, kAll},        // pmovzxbw
    {0x37, 0x41, k66, kAll, kAll},        // pcmpgtq to phminposuw
    {0x80, 0x82, k66, kAll},              // invept, invvpid, invpcid
    {0xC8, 0xCD, kNone, kAll, kAll},      // sha1nexte to sha256msg2
    {0xCF, 0xCF, k66, kAll, kAll},        // gf2p8mulb
    {0xD8, 0xD8, kF3, 0x0F},              // aesencwide128kl
    {0xDB, 0xDF, k66, kAll, kAll},        // aesimc to aesdeclast
    {0xDC, 0xDC, kF3, kAll, kAll},        // aesenc128kl, loadiwkey
    {0xDD, 0xDF, kF3, kAll},              // aesdec128kl
    {0xF0, 0xF1, kPlain66, kAll},         // movbe
    {0xF0, 0xF1, kF2, kAll, kAll},        // crc32
    {0xF5, 0xF5, k66, kAll},              // wruss
    {0xF6, 0xF6, kNone, kAll},            // wrss
    {0xF6, 0xF6, k66 | kF3, kAll, kAll},  // adcx, adox
    {0xF8, 0xF8, k66 | kF3 | kF2, kAll},  // movdir64b, enqcmd
    {0xF9, 0xF9, kNone, kAll},            // movdiri
    {0xFA, 0xFB, kF3, 0, kAll},           // encodekey128
    {0xFC, 0xFC, kAnyPrefix, kAll},       // aadd
};

constexpr Row kAt0f3a[] = {
    {0x08, 0x0E, k66, kAll, kAll, Immediate::byte},                  // roundps to pblendw
    {0x0F, 0x0F, kPlain66, kAll, kAll, Immediate::byte},             // palignr
    {0x14, 0x17, k66, kAll, kAll, Immediate::byte},                  // pextrb to extractps
    {0x20, 0x22, k66, kAll, kAll, Immediate::byte},                  // pinsrb, insertps, pinsrd
    {0x40, 0x42, k66, kAll, kAll, Immediate::byte},                  // dpps, dppd, mpsadbw
    {0x44, 0x44, k66, kAll, kAll, Immediate::byte},                  // pclmulqdq
    {0x60, 0x63, k66, kAll, kAll, Immediate::byte},                  // pcmpestrm
    {0xCC, 0xCC, kNone, kAll, kAll, Immediate::byte},                // sha1rnds4
    {0xCE, 0xCF, k66, kAll, kAll, Immediate::byte},                  // gf2p8affineqb
    {0xDF, 0xDF, k66, kAll, kAll, Immediate::byte},                  // aeskeygenassist
    {0xF0, 0xF0, kF3, 0xC0, 0xC0, Immediate::byte, kBoth | kExact},  // hreset
};

constexpr Row kVex0f[] = {
    {0x10, 0x11, kPlain66, kAll, kAll, Immediate::none, kBoth | kL | kW},  // vmovups
    {0x10, 0x11, kF3 | kF2, kAll, 0, Immediate::none, kBoth | kL | kW},
    {0x10, 0x11, kF3 | kF2, 0, kAll, Immediate::none, kBoth | kL | kW | kThird},
    {0x12, 0x12, kNone, kAll, kAll, Immediate::none, kBoth | kL0 | kW | kThird},  // vmovlps, vmovhlps
    {0x12, 0x12, k66, kAll, 0, Immediate::none, kBoth | kL0 | kW | kThird},
    {0x12, 0x12, kF3 | kF2, kAll, kAll, Immediate::none, kBoth | kL | kW},  // vmovsldup
    {0x13, 0x13, kPlain66, kAll, 0, Immediate::none, kBoth | kL0 | kW},
    {0x14, 0x15, kPlain66, kAll, kAll, Immediate::none, kBoth | kL | kW | kThird},  // vunpcklps
    {0x16, 0x16, kNone, kAll, kAll, Immediate::none, kBoth | kL0 | kW | kThird},    // vmovhps, vmovlhps
    {0x16, 0x16, k66, kAll, 0, Immediate::none, kBoth | kL0 | kW | kThird},
    {0x16, 0x16, kF3, kAll, kAll, Immediate::none, kBoth | kL | kW},  // vmovshdup
    {0x17, 0x17, kPlain66, kAll, 0, Immediate::none, kBoth | kL0 | kW},
    {0x28, 0x29, kPlain66, kAll, kAll, Immediate::none, kBoth | kL | kW},            // vmovaps
    {0x2A, 0x2A, kF3 | kF2, kAll, kAll, Immediate::none, kBoth | kL | kW | kThird},  // vcvtsi2ss
    {0x2B, 0x2B, kPlain66, kAll, 0, Immediate::none, kBoth | kL | kW},               // vmovntps
    {0x2C, 0x2D, kF3 | kF2, kAll, kAll, Immediate::none, kBoth | kL | kW},           // vcvttss2si
    {0x2E, 0x2F, kPlain66, kAll, kAll, Immediate::none, kBoth | kL | kW},            // vucomiss
    {0x50, 0x50, kPlain66, 0, kAll, Immediate::none, kBoth | kL | kW},               // vmovmskps
    {0x51, 0x51, kPlain66, kAll, kAll, Immediate::none, kBoth | kL | kW},            // vsqrtps
    {0x51, 0x51, kF3 | kF2, kAll, kAll, Immediate::none, kBoth | kL | kW | kThird},
    {0x52, 0x53, kNone, kAll, kAll, Immediate::none, kBoth | kL | kW},  // vrsqrtps, vrcpps
    {0x52, 0x53, kF3, kAll, kAll, Immediate::none, kBoth | kL | kW | kThird},
    {0x54, 0x57, kPlain66, kAll, kAll, Immediate::none, kBoth | kL | kW | kThird},    // vandps
    {0x58, 0x59, kAnyPrefix, kAll, kAll, Immediate::none, kBoth | kL | kW | kThird},  // vaddps, vmulps
    {0x5A, 0x5A, kPlain66, kAll, kAll, Immediate::none, kBoth | kL | kW},             // vcvtps2pd
    {0x5A, 0x5A, kF3 | kF2, kAll, kAll, Immediate::none, kBoth | kL | kW | kThird},
    {0x5B, 0x5B, kPlain66 | kF3, kAll, kAll, Immediate::none, kBoth | kL | kW},       // vcvtdq2ps
    {0x5C, 0x5F, kAnyPrefix, kAll, kAll, Immediate::none, kBoth | kL | kW | kThird},  // vsubps to vmaxps
    {0x60, 0x6D, k66, kAll, kAll, Immediate::none, kBoth | kL | kW | kThird},         // vpunpcklbw to vpunpckhqdq
    {0x6E, 0x6E, k66, kAll, kAll, Immediate::none, kBoth | kL0 | kW},                 // vmovd
    {0x6F, 0x6F, k66 | kF3, kAll, kAll, Immediate::none, kBoth | kL | kW},            // vmovdqa
    {0x70, 0x70, k66 | kF3 | kF2, kAll, kAll, Immediate::byte, kBoth | kL | kW},      // vpshufd
    {0x71, 0x72, k66, 0, 0x54, Immediate::byte, kBoth | kL | kW | kThird},            // groups 12 and 13
    {0x73, 0x73, k66, 0, 0xCC, Immediate::byte, kBoth | kL | kW | kThird},            // group 14
    {0x74, 0x76, k66, kAll, kAll, Immediate::none, kBoth | kL | kW | kThird},         // vpcmpeqb
    {0x77, 0x77, kNone, 0, 0, Immediate::none, kBoth | kL | kW},                      // vzeroupper
    {0x7C, 0x7D, k66 | kF2, kAll, kAll, Immediate::none, kBoth | kL | kW | kThird},   // vhaddpd
    {0x7E, 0x7E, k66 | kF3, kAll, kAll, Immediate::none, kBoth | kL0 | kW},           // vmovd
    {0x7F, 0x7F, k66 | kF3, kAll, kAll, Immediate::none, kBoth | kL | kW},            // vmovdqa
    {0xAE, 0xAE, kNone, 0x0C, 0, Immediate::none, kBoth | kL0 | kW},                  // vldmxcsr, vstmxcsr
    {0xC2, 0xC2, kAnyPrefix, kAll, kAll, Immediate::byte, kBoth | kL | kW | kThird},  // vcmpps
    {0xC4, 0xC4, k66, kAll, kAll, Immediate::byte, kBoth | kL0 | kW | kThird},        // vpinsrw
    {0xC5, 0xC5, k66, 0, kAll, Immediate::byte, kBoth | kL0 | kW},                    // vpextrw
    {0xC6, 0xC6, kPlain66, kAll, kAll, Immediate::byte, kBoth | kL | kW | kThird},    // vshufps
    {0xD0, 0xD0, k66 | kF2, kAll, kAll, Immediate::none, kBoth | kL | kW | kThird},   // vaddsubpd
    {0xD1, 0xD5, k66, kAll, kAll, Immediate::none, kBoth | kL | kW | kThird},         // vpsrlw to vpmullw
    {0xD6, 0xD6, k66, kAll, kAll, Immediate::none, kBoth | kL0 | kW},                 // vmovq
    {0xD7, 0xD7, k66, 0, kAll, Immediate::none, kBoth | kL | kW},                     // vpmovmskb
    {0xD8, 0xE5, k66, kAll, kAll, Immediate::none, kBoth | kL | kW | kThird},         // vpsubusb to vpmulhw
    {0xE6, 0xE6, k66 | kF3 | kF2, kAll, kAll, Immediate::none, kBoth | kL | kW},      // vcvttpd2dq
    {0xE7, 0xE7, k66, kAll, 0, Immediate::none, kBoth | kL | kW},                     // vmovntdq
    {0xE8, 0xEF, k66, kAll, kAll, Immediate::none, kBoth | kL | kW | kThird},         // vpsubsb to vpxor
    {0xF0, 0xF0, kF2, kAll, 0, Immediate::none, kBoth | kL | kW},                     // vlddqu
    {0xF1, 0xF6, k66, kAll, kAll, Immediate::none, kBoth | kL | kW | kThird},         // vpsllw to vpsadbw
    {0xF7, 0xF7, k66, 0, kAll, Immediate::none, kBoth | kL0 | kW},                    // vmaskmovdqu
    {0xF8, 0xFE, k66, kAll, kAll, Immediate::none, kBoth | kL | kW | kThird},         // vpsubb to vpaddd
};

constexpr Row kVex0f38[] = {
    {0x00, 0x0B, k66, kAll, kAll, Immediate::none, kBoth | kL | kW | kThird},          // vpshufb to vpmulhrsw
    {0x0C, 0x0D, k66, kAll, kAll, Immediate::none, kBoth | kL | kW0 | kThird},         // vpermilps
    {0x0E, 0x0F, k66, kAll, kAll, Immediate::none, kBoth | kL | kW0},                  // vtestps
    {0x13, 0x13, k66, kAll, kAll, Immediate::none, kBoth | kL | kW0},                  // vcvtph2ps
    {0x16, 0x16, k66, kAll, kAll, Immediate::none, kBoth | kL1 | kW0 | kThird},        // vpermps
    {0x17, 0x17, k66, kAll, kAll, Immediate::none, kBoth | kL | kW},                   // vptest
    {0x18, 0x18, k66, kAll, kAll, Immediate::none, kBoth | kL | kW0},                  // vbroadcastss
    {0x19, 0x19, k66, kAll, kAll, Immediate::none, kBoth | kL1 | kW0},                 // vbroadcastsd
    {0x1A, 0x1A, k66, kAll, 0, Immediate::none, kBoth | kL1 | kW0},                    // vbroadcastf128
    {0x1C, 0x1E, k66, kAll, kAll, Immediate::none, kBoth | kL | kW},                   // vpabsb
    {0x20, 0x25, k66, kAll, kAll, Immediate::none, kBoth | kL | kW},                   // vpmovsxbw
    {0x28, 0x29, k66, kAll, kAll, Immediate::none, kBoth | kL | kW | kThird},          // vpmuldq, vpcmpeqq
    {0x2A, 0x2A, k66, kAll, 0, Immediate::none, kBoth | kL | kW},                      // vmovntdqa
    {0x2B, 0x2B, k66, kAll, kAll, Immediate::none, kBoth | kL | kW | kThird},          // vpackusdw
    {0x2C, 0x2F, k66, kAll, 0, Immediate::none, kBoth | kL | kW0 | kThird},            // vmaskmovps
    {0x30, 0x35, k66, kAll, kAll, Immediate::none, kBoth | kL | kW},                   // vpmovzxbw
    {0x36, 0x36, k66, kAll, kAll, Immediate::none, kBoth | kL1 | kW0 | kThird},        // vpermd
    {0x37, 0x40, k66, kAll, kAll, Immediate::none, kBoth | kL | kW | kThird},          // vpcmpgtq to vpmulld
    {0x41, 0x41, k66, kAll, kAll, Immediate::none, kBoth | kL0 | kW},                  // vphminposuw
    {0x45, 0x45, k66, kAll, kAll, Immediate::none, kBoth | kL | kW | kThird},          // vpsrlvd
    {0x46, 0x46, k66, kAll, kAll, Immediate::none, kBoth | kL | kW0 | kThird},         // vpsravd
    {0x47, 0x47, k66, kAll, kAll, Immediate::none, kBoth | kL | kW | kThird},          // vpsllvd
    {0x50, 0x51, kAnyPrefix, kAll, kAll, Immediate::none, kBoth | kL | kW0 | kThird},  // vpdpbusd
    {0x52, 0x53, k66, kAll, kAll, Immediate::none, kBoth | kL | kW0 | kThird},         // vpdpwssd
    {0x58, 0x59, k66, kAll, kAll, Immediate::none, kBoth | kL | kW0},                  // vpbroadcastd
    {0x5A, 0x5A, k66, kAll, 0, Immediate::none, kBoth | kL1 | kW0},                    // vbroadcasti128
    {0x72, 0x72, kF3, kAll, kAll, Immediate::none, kBoth | kL | kW0},                  // vcvtneps2bf16
    {0x78, 0x79, k66, kAll, kAll, Immediate::none, kBoth | kL | kW0},                  // vpbroadcastb
    {0x8C, 0x8C, k66, kAll, 0, Immediate::none, kBoth | kL | kW | kThird},             // vpmaskmovd
    {0x8E, 0x8E, k66, kAll, 0, Immediate::none, kBoth | kL | kW | kThird},
    {0x96, 0x9F, k66, kAll, kAll, Immediate::none, kBoth | kL | kW | kThird},  // vfmaddsub132ps to vfnmsub132ss
    {0xA6, 0xAF, k66, kAll, kAll, Immediate::none, kBoth | kL | kW | kThird},
    {0xB0, 0xB0, kAnyPrefix, kAll, 0, Immediate::none, kBoth | kL | kW0},       // vcvtneebf162ps
    {0xB1, 0xB1, k66 | kF3, kAll, 0, Immediate::none, kBoth | kL | kW0},        // vbcstnesh2ps
    {0xB4, 0xB5, k66, kAll, kAll, Immediate::none, kBoth | kL | kW1 | kThird},  // vpmadd52luq
    {0xB6, 0xBF, k66, kAll, kAll, Immediate::none, kBoth | kL | kW | kThird},   // vfmaddsub231ps to vfnmsub231ss
    {0xCF, 0xCF, k66, kAll, kAll, Immediate::none, kBoth | kL | kW0 | kThird},  // vgf2p8mulb
    {0xD2, 0xD3, kPlain66 | kF3, kAll, kAll, Immediate::none, kBoth | kL | kW0 | kThird},     // vpdpwusd
    {0xDB, 0xDB, k66, kAll, kAll, Immediate::none, kBoth | kL0 | kW},                         // vaesimc
    {0xDC, 0xDF, k66, kAll, kAll, Immediate::none, kBoth | kL | kW | kThird},                 // vaesenc to vaesdeclast
    {0xF2, 0xF2, kNone, kAll, kAll, Immediate::none, kBoth | kL0 | kW | kThird},              // andn
    {0xF3, 0xF3, kNone, 0x0E, 0x0E, Immediate::none, kBoth | kL0 | kW | kThird},              // group 17
    {0xF5, 0xF5, kNone | kF3 | kF2, kAll, kAll, Immediate::none, kBoth | kL0 | kW | kThird},  // bzhi, pext, pdep
    {0xF6, 0xF6, kF2, kAll, kAll, Immediate::none, kBoth | kL0 | kW | kThird},                // mulx
    {0xF7, 0xF7, kAnyPrefix, kAll, kAll, Immediate::none, kBoth | kL0 | kW | kThird},         // bextr, shlx, sarx, shrx
};

constexpr Row kVex0f3a[] = {
    {0x00, 0x01, k66, kAll, kAll, Immediate::byte, kBoth | kL1 | kW1},           // vpermq
    {0x02, 0x02, k66, kAll, kAll, Immediate::byte, kBoth | kL | kW0 | kThird},   // vpblendd
    {0x04, 0x05, k66, kAll, kAll, Immediate::byte, kBoth | kL | kW0},            // vpermilps
    {0x06, 0x06, k66, kAll, kAll, Immediate::byte, kBoth | kL1 | kW0 | kThird},  // vperm2f128
    {0x08, 0x09, k66, kAll, kAll, Immediate::byte, kBoth | kL | kW},             // vroundps
    {0x0A, 0x0F, k66, kAll, kAll, Immediate::byte, kBoth | kL | kW | kThird},    // vroundss to vpalignr
    {0x14, 0x17, k66, kAll, kAll, Immediate::byte, kBoth | kL0 | kW},            // vpextrb to vextractps
    {0x18, 0x18, k66, kAll, kAll, Immediate::byte, kBoth | kL1 | kW0 | kThird},  // vinsertf128
    {0x19, 0x19, k66, kAll, kAll, Immediate::byte, kBoth | kL1 | kW0},           // vextractf128
    {0x1D, 0x1D, k66, kAll, kAll, Immediate::byte, kBoth | kL | kW0},            // vcvtps2ph
    {0x20, 0x22, k66, kAll, kAll, Immediate::byte, kBoth | kL0 | kW | kThird},   // vpinsrb, vinsertps, vpinsrd
    {0x38, 0x38, k66, kAll, kAll, Immediate::byte, kBoth | kL1 | kW0 | kThird},  // vinserti128
    {0x39, 0x39, k66, kAll, kAll, Immediate::byte, kBoth | kL1 | kW0},           // vextracti128
    {0x40, 0x40, k66, kAll, kAll, Immediate::byte, kBoth | kL | kW | kThird},    // vdpps
    {0x41, 0x41, k66, kAll, kAll, Immediate::byte, kBoth | kL0 | kW | kThird},   // vdppd
    {0x42, 0x42, k66, kAll, kAll, Immediate::byte, kBoth | kL | kW | kThird},    // vmpsadbw
    {0x44, 0x44, k66, kAll, kAll, Immediate::byte, kBoth | kL | kW | kThird},    // vpclmulqdq
    {0x46, 0x46, k66, kAll, kAll, Immediate::byte, kBoth | kL1 | kW0 | kThird},  // vperm2i128
    {0x4A, 0x4C, k66, kAll, kAll, Immediate::byte, kBoth | kL | kW0 | kThird},   // vblendvps
    {0x60, 0x63, k66, kAll, kAll, Immediate::byte, kBoth | kL0 | kW},            // vpcmpestrm
    {0xCE, 0xCF, k66, kAll, kAll, Immediate::byte, kBoth | kL | kW1 | kThird},   // vgf2p8affineqb
    {0xDF, 0xDF, k66, kAll, kAll, Immediate::byte, kBoth | kL0 | kW},            // vaeskeygenassist
    {0xF0, 0xF0, kF2, kAll, kAll, Immediate::byte, kBoth | kL0 | kW},            // rorx
};

struct Lockable {
  Map map;
  uint8_t first, last;
  uint8_t memory;
};

constexpr Lockable kLockable[] = {
    {Map::one_byte, 0x80, 0x83, 0x7F},   // group 1, but cmp
    {Map::one_byte, 0x86, 0x87, kAll},   // xchg
    {Map::one_byte, 0xF6, 0xF7, 0x0C},   // not, neg
    {Map::one_byte, 0xFE, 0xFF, 0x03},   // inc, dec
    {Map::two_bytes, 0xAB, 0xAB, kAll},  // bts
    {Map::two_bytes, 0xB0, 0xB1, kAll},  // cmpxchg
    {Map::two_bytes, 0xB3, 0xB3, kAll},  // btr
    {Map::two_bytes, 0xBA, 0xBA, 0xE0},  // group 8, but bt
    {Map::two_bytes, 0xBB, 0xBB, kAll},  // btc
    {Map::two_bytes, 0xC0, 0xC1, kAll},  // xadd
    {Map::two_bytes, 0xC7, 0xC7, 0x02},  // cmpxchg8b
};

}  // namespace

std::span<const Row> rows_of(Map map) {
  switch (map) {
  case Map::one_byte: return kOneByte;
  case Map::two_bytes: return kTwoBytes;
  case Map::at_0f38: return kAt0f38;
  case Map::at_0f3a: return kAt0f3a;
  case Map::vex_0f: return kVex0f;
  case Map::vex_0f38: return kVex0f38;
  case Map::vex_0f3a: return kVex0f3a;
  }
  return {};
}

bool can_lock(Map map, uint8_t opcode, unsigned middle) {
  // add to xor, but not cmp, into memory.
  if (map == Map::one_byte && opcode < 0x38) return (opcode & 7) < 2;
  for (const Lockable& one : kLockable)
    if (one.map == map && opcode >= one.first && opcode <= one.last) return (one.memory >> middle & 1) != 0;
  return false;
}

}  // namespace rh::redirect::x86
