/* Collects the provenance of runs: from the build, the system, and the libraries that are loaded.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "experiments/base/provenance.h"

#include "core/base/json.h"
#include "core/base/utf8.h"
#include "llm/backend/open/open.h"

#include <gen/version.h>
#include <gsl/gsl_version.h>
#include <pcre2.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#include <utf8proc.h>
#include <yaml.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif
#ifdef GEPOLAB_WITH_MPI
#include <mpi.h>
#endif

/* Defined in build/gen/source.c, which experiments/write_source.sh writes. */
extern const char source_commit[], source_cuda[];
extern const int source_dirty;

/* --- command line --- */

/* Variables of the environment that change what a run computes (threads and kernels of the matrix
 * products, and with them rounding) or on which device. */
static const char *const variables[] = {
    "OPENBLAS_CORETYPE",         "OPENBLAS_NUM_THREADS",  "GOTO_NUM_THREADS",
    "OMP_NUM_THREADS",           "GLIBC_TUNABLES",        "CUDA_VISIBLE_DEVICES",
    "GEPOLAB_CUDA_OUTPUT_CHUNK", "GEPOLAB_CUDA_PRODUCTS", "GEPOLAB_CPU_FORM"};

static int provenance_is_plain(const char *word) {
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                              "%+,-./:=@_";
  return word[0] != '\0' && word[strspn(word, plain)] == '\0';
}

/* Shell quoting: in single quotes nothing is special. A quote ends them and is escaped outside. */
static void quote(const char *word, FILE *to) {
  if (provenance_is_plain(word)) {
    fputs(word, to);
    return;
  }
  putc('\'', to);
  for (size_t left = strlen(word); left > 0;) {
    const size_t whole = utf8_valid_prefix(word, left);
    for (size_t i = 0; i < whole; ++i)
      if (word[i] == '\'')
        fputs("'\\''", to);
      else
        putc(word[i], to);
    word += whole;
    left -= whole;
    if (left == 0) break;
    fprintf(to, "'\"$(printf '\\%03o')\"'", (unsigned)(unsigned char)*word);
    ++word;
    --left;
  }
  putc('\'', to);
}

/* Cuts a text of more than `most` bytes between two characters. */
static void provenance_cut(char *text, size_t most) {
  static const char end[] = "…";
  if (strlen(text) <= most || most < sizeof end) return;
  const size_t whole = utf8_valid_prefix(text, most - (sizeof end - 1));
  memcpy(text + whole, end, sizeof end);
}

/* The program's name without its folder, which does not affect results. */
static const char *provenance_name_of(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash != NULL ? slash + 1 : path;
}

char *provenance_command(const char *const *words, size_t n, size_t most) {
  char *text = NULL;
  size_t size = 0;
  FILE *to = open_memstream(&text, &size);
  if (to == NULL) return NULL;
  for (size_t i = 0; i < sizeof variables / sizeof *variables; ++i) {
    const char *value = getenv(variables[i]);
    if (value == NULL) continue;
    fprintf(to, "%s=", variables[i]);
    quote(value, to);
    putc(' ', to);
  }
  for (size_t i = 0; i < n; ++i) {
    if (i > 0) putc(' ', to);
    quote(i == 0 ? provenance_name_of(words[i]) : words[i], to);
  }
  if (fclose(to) != 0) {
    free(text);
    return NULL;
  }
  provenance_cut(text, most);
  return text;
}

/* Reads the arguments of this process, each ended by a NUL, *size bytes. NULL if the system does
 * not provide them. */
static char *read_command_line(size_t *size) {
  char *text = NULL, piece[4096];
  size_t got;
  FILE *from = fopen("/proc/self/cmdline", "rb"), *to = open_memstream(&text, size);
  while (from != NULL && to != NULL && (got = fread(piece, 1, sizeof piece, from)) > 0)
    fwrite(piece, 1, got, to);
  const int read = from != NULL && !ferror(from);
  if (from != NULL) fclose(from);
  if (to != NULL && fclose(to) == 0 && read && *size > 0 && text[*size - 1] == '\0') return text;
  free(text);
  return NULL;
}

/* Returns this process's command line; "" if the system does not provide it. */
static char *own_command(void) {
  enum { MOST = 1 << 16 };
  size_t size = 0, count = 0, n = 0;
  char *line = read_command_line(&size), *text = NULL;
  if (line == NULL) return strdup("");
  for (size_t i = 0; i < size; ++i) count += line[i] == '\0';
  const char **words = calloc(count, sizeof *words);
  for (const char *at = line; words != NULL && n < count; at += strlen(at) + 1) words[n++] = at;
  if (words != NULL) text = provenance_command(words, n, MOST);
  free(words);
  free(line);
  return text;
}

/* --- machine --- */

/* Names of the line with the processor's model in /proc/cpuinfo, the most precise first. */
static const char *const models[] = {"model name", "Model Name", "cpu model", "uarch", "cpu"};

/* The value of a line "name : value", or NULL. Cuts the line at its line break. */
static char *provenance_value_of(char *line, const char *name) {
  const size_t length = strlen(name);
  if (strncmp(line, name, length) != 0) return NULL;
  char *at = line + length + strspn(line + length, " \t");
  if (*at != ':') return NULL;
  at += 1 + strspn(at + 1, " \t");
  at[strcspn(at, "\r\n")] = '\0';
  return at[0] != '\0' ? at : NULL;
}

static void keep_utf8(char *text) {
  for (char *at = text; *(at += utf8_valid_prefix(at, strlen(at))) != '\0'; ++at) *at = '?';
}

char *provenance_processor(FILE *cpuinfo, const char *machine, char *text, size_t size) {
  enum { N = sizeof models / sizeof *models };
  char line[1024];
  size_t best = N;
  snprintf(text, size, "%s", machine);
  while (best > 0 && cpuinfo != NULL && fgets(line, sizeof line, cpuinfo) != NULL) {
    if (line[0] == '\n') break; /* the end of the first processor */
    for (size_t i = 0; i < best; ++i) {
      const char *value = provenance_value_of(line, models[i]);
      if (value == NULL) continue;
      snprintf(text, size, "%s", value);
      best = i;
    }
  }
  keep_utf8(text);
  return text;
}

static void provenance_describe_machine(provenance *p) {
  struct utsname u;
  char model[PROVENANCE_TEXT_SIZE - 32];
  const int known = uname(&u) == 0;
  const long threads = sysconf(_SC_NPROCESSORS_ONLN);
  FILE *cpuinfo = fopen("/proc/cpuinfo", "r");
  provenance_processor(cpuinfo, known ? u.machine : "", model, sizeof model);
  if (cpuinfo != NULL) fclose(cpuinfo);
  snprintf(p->processor, sizeof p->processor, threads > 0 ? "%s, %ld thread%s" : "%s", model,
           threads, threads == 1 ? "" : "s");
  if (known) snprintf(p->system, sizeof p->system, "%.*s %.*s", 100, u.sysname, 100, u.machine);
  keep_utf8(p->system);
}

int64_t provenance_peak_bytes(void) {
  struct rusage u;
  return getrusage(RUSAGE_SELF, &u) == 0 && u.ru_maxrss > 0 ? (int64_t)u.ru_maxrss * 1024 : 0;
}

char *provenance_now(char text[PROVENANCE_DATE_SIZE]) {
  const time_t now = time(NULL);
  struct tm utc;
  if (gmtime_r(&now, &utc) == NULL ||
      strftime(text, PROVENANCE_DATE_SIZE, "%Y-%m-%dT%H:%M:%SZ", &utc) == 0)
    text[0] = '\0';
  return text;
}

/* --- compiler and libraries --- */

static void describe_compiler(provenance *p) {
#if defined __clang__
  snprintf(p->compiler, sizeof p->compiler, "clang %d.%d.%d", __clang_major__, __clang_minor__,
           __clang_patchlevel__);
#elif defined __GNUC__
  snprintf(p->compiler, sizeof p->compiler, "gcc %d.%d.%d", __GNUC__, __GNUC_MINOR__,
           __GNUC_PATCHLEVEL__);
#else
  snprintf(p->compiler, sizeof p->compiler, "not known");
#endif
}

/* Weak, because only some BLAS libraries have it. "OpenBLAS 0.3.21 DYNAMIC_ARCH … Haswell …": the
 * kernels that it chose for this processor are part of it. */
extern char *openblas_get_config(void) __attribute__((weak));

static int provenance_add(cJSON *to, const char *name, const char *version) {
  char text[PROVENANCE_TEXT_SIZE];
  snprintf(text, sizeof text, "%s", version);
  text[strcspn(text, "\n")] = '\0';
  keep_utf8(text);
  return json_add_string(to, name, text) != NULL;
}

static int add_blas(cJSON *to) {
  static const char name[] = "OpenBLAS ";
  if (openblas_get_config == NULL) return provenance_add(to, "BLAS", "not OpenBLAS");
  const char *text = openblas_get_config();
  return provenance_add(to, "OpenBLAS",
                        text + (strncmp(text, name, strlen(name)) == 0 ? strlen(name) : 0));
}

static int add_pcre2(cJSON *to) {
  char text[64] = "";
  return pcre2_config(PCRE2_CONFIG_VERSION, NULL) < (int)sizeof text &&
         pcre2_config(PCRE2_CONFIG_VERSION, text) >= 0 && provenance_add(to, "PCRE2", text);
}

/* "Open MPI v4.1.4, package: …": the words before the first comma. MPI_Get_library_version() may be
 * called before MPI_Init(). */
static int add_mpi(cJSON *to) {
#ifdef GEPOLAB_WITH_MPI
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  if (MPI_Get_library_version(text, &length) != MPI_SUCCESS) return 1;
  text[strcspn(text, ",")] = '\0';
  return provenance_add(to, "MPI", text);
#else
  return to != NULL;
#endif
}

/* Lists the versions that the loaded libraries report, which may differ from those at build time;
 * and the variant of the transformer's arithmetic on this processor, which also affects the last
 * bits of results. */
static char *describe_libraries(void) {
  cJSON *all = cJSON_CreateObject();
  int ok = all != NULL && provenance_add(all, "GSL", gsl_version) && add_blas(all) &&
           provenance_add(all, "SQLite", sqlite3_libversion()) &&
           provenance_add(all, "libyaml", yaml_get_version_string()) &&
           provenance_add(all, "cJSON", cJSON_Version()) && add_pcre2(all) &&
           provenance_add(all, "utf8proc", utf8proc_version()) &&
           provenance_add(all, "CPU form", backend_cpu_form());
#ifdef __GLIBC__
  ok = ok &&
       provenance_add(all, "glibc", gnu_get_libc_version()); /* with its mathematical functions */
#endif
  ok = ok && add_mpi(all) && (source_cuda[0] == '\0' || provenance_add(all, "CUDA", source_cuda));
  char *text = ok ? cJSON_PrintUnformatted(all) : NULL;
  cJSON_Delete(all);
  return text;
}

/* --- all of it --- */

gl_status provenance_init(provenance *p, gl_error *err) {
  *p = (provenance){.command = own_command()};
  p->libraries = describe_libraries();
  provenance_describe_machine(p);
  describe_compiler(p);
  p->record = (run_provenance){.version = GEPOLAB_VERSION,
                               .source = source_commit,
                               .dirty = source_dirty,
                               .command = p->command,
                               .processor = p->processor,
                               .system = p->system,
                               .compiler = p->compiler,
                               .libraries = p->libraries};
  return p->command != NULL && p->libraries != NULL ? GL_OK
                                                    : gl_fail_memory(err, "a run's provenance");
}

void provenance_fini(provenance *p) {
  free(p->command);
  free(p->libraries);
  p->command = p->libraries = NULL;
  p->record = (run_provenance){.dirty = -1};
}
