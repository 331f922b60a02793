/* The forms of the CPU's arithmetic: their names, tables of operations, and which one this
 * processor runs. */
#include "llm/backend/cpu/cpu.h"

#include <stdlib.h>
#include <string.h>

extern const backend_ops cpu_ops_f32, cpu_ops_f64;
#if defined(__x86_64__)
extern const backend_ops cpu_ops_f32_avx2, cpu_ops_f64_avx2, cpu_ops_f32_avx512, cpu_ops_f64_avx512;
#endif
#if defined(__aarch64__)
extern const backend_ops cpu_ops_f32_neon, cpu_ops_f64_neon;
#endif

const char *cpu_form_name(cpu_form form) {
  switch (form) {
  case CPU_PLAIN:
    return "plain";
  case CPU_NEON:
    return "neon";
  case CPU_AVX2:
    return "avx2";
  case CPU_AVX512:
    return "avx512";
  }
  return "";
}

const backend_ops *cpu_form_ops(cpu_form form, number_type type) {
  const int f64 = type == NUMBER_F64;
  switch (form) {
  case CPU_PLAIN:
    return f64 ? &cpu_ops_f64 : &cpu_ops_f32;
#if defined(__x86_64__)
  case CPU_AVX2:
    return f64 ? &cpu_ops_f64_avx2 : &cpu_ops_f32_avx2;
  case CPU_AVX512:
    return f64 ? &cpu_ops_f64_avx512 : &cpu_ops_f32_avx512;
  case CPU_NEON:
    return NULL;
#elif defined(__aarch64__)
  case CPU_NEON:
    return f64 ? &cpu_ops_f64_neon : &cpu_ops_f32_neon;
  case CPU_AVX2:
  case CPU_AVX512:
    return NULL;
#else
  case CPU_NEON:
  case CPU_AVX2:
  case CPU_AVX512:
    return NULL;
#endif
  }
  return NULL;
}

#if defined(__x86_64__)
static int has_avx2(void) {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

/* The extensions that the Makefile lets the compiler use. */
static int has_avx512(void) {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
}
#else
static int has_avx2(void) {
  return 0;
}
static int has_avx512(void) {
  return 0;
}
#endif

const char *cpu_form_lacks(cpu_form form) {
  switch (form) {
  case CPU_PLAIN:
    return NULL;
  case CPU_NEON:
    return cpu_form_ops(form, NUMBER_F32) != NULL ? NULL : "64-bit ARM";
  case CPU_AVX2:
    return has_avx2() ? NULL : "AVX2";
  case CPU_AVX512:
    return has_avx512() ? NULL : "AVX-512";
  }
  return "";
}

cpu_form cpu_form_best(void) {
  int form = CPU_FORMS - 1;
  while (form > CPU_PLAIN && cpu_form_lacks((cpu_form)form) != NULL) --form;
  return (cpu_form)form;
}

gl_status cpu_form_read(cpu_form *out, const char *name, gl_error *err) {
  *out = cpu_form_best();
  if (name == NULL || name[0] == '\0') return GL_OK;
  int form = 0;
  while (form < CPU_FORMS && strcmp(name, cpu_form_name((cpu_form)form)) != 0) ++form;
  if (form == CPU_FORMS)
    return gl_fail(err, GL_EINPUT,
                   "GEPOLAB_CPU_FORM is \"%.40s\"; it is plain, neon, avx2 or avx512, or unset for "
                   "the best that the processor runs",
                   name);
  const char *lacks = cpu_form_lacks((cpu_form)form);
  if (lacks != NULL)
    return gl_fail(err, GL_EINPUT,
                   "GEPOLAB_CPU_FORM is %s, but this processor lacks %s; unset it for %s", name,
                   lacks, cpu_form_name(*out));
  *out = (cpu_form)form;
  return GL_OK;
}

gl_status cpu_form_chosen(cpu_form *out, gl_error *err) {
  return cpu_form_read(out, getenv("GEPOLAB_CPU_FORM"), err);
}
