/* Stopping on request: a command that has work to save notes the first signal and looks it up
 * between steps. */
#ifndef GEPOLAB_EXPERIMENTS_BASE_SIGNALS_H
#define GEPOLAB_EXPERIMENTS_BASE_SIGNALS_H

/* From here on the first SIGINT, SIGTERM or SIGHUP is noted instead of ending the process; a second
 * of the same kind ends it. */
void signals_catch(void);
/* SIGTERM alone, noted every time: for a worker, which its parent tells to stop. */
void signals_catch_term(void);
/* The noted signal, or 0. */
int signals_caught(void);

#endif
