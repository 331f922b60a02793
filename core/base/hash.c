/* FNV-1a in 128 bits as hex digits, and in 64 bits. */
#include "core/base/hash.h"

#include <stdio.h>

uint64_t hash_64(uint64_t hash, const void *data, size_t size) {
  const unsigned char *byte = data;
  for (size_t i = 0; i < size; ++i) hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
  return hash;
}

/* FNV-1a with the 128-bit prime 2^88 + 2^8 + 0x3b, on two 64-bit halves. */
void hash_hex(const void *data, size_t size, char hex[HASH_HEX_SIZE]) {
  const unsigned char *byte = data;
  uint64_t high = UINT64_C(0x6c62272e07bb0142), low = UINT64_C(0x62b821756295c58d);
  for (size_t i = 0; i < size; ++i) {
    low ^= byte[i];
    /* (high, low) * (2^88 + 0x13b) mod 2^128, the low product by 32-bit limbs */
    uint64_t a = (low & 0xffffffffu) * 0x13b, b = (low >> 32) * 0x13b;
    uint64_t middle = (a >> 32) + (b & 0xffffffffu);
    uint64_t carry = (b >> 32) + (middle >> 32);
    high = high * 0x13b + carry + (low << 24);
    low = (middle << 32) | (a & 0xffffffffu);
  }
  snprintf(hex, HASH_HEX_SIZE, "%016llx%016llx", (unsigned long long)high, (unsigned long long)low);
}
