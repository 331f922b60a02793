/* Writes the gradient coefficients of a group's responses as products of a factor of the response
 * and one of the group (toy/lab/kernel.h), for algorithms whose coefficients are such products. */
#ifndef GEPOLAB_TOY_LAB_FORM_H
#define GEPOLAB_TOY_LAB_FORM_H

#include "core/policy/policy.h"
#include "toy/lab/kernel.h"
#include "toy/lab/tables.h"

/* Writes the algorithm as a form over the tables' responses. *fast is 0, and the form empty, where
 * an algorithm does not factor or responses have several tokens: then policy_evaluate() is asked
 * group by group. The tables `up` and `down` are not written a second time: they are what
 * policy_evaluate() says of a group of one with advantage +1, -1 and 0. The reward of `t` is
 * borrowed. */
gl_status lab_form_init(lab_form *f, int *fast, const policy_algorithm *algorithm,
                        const lab_tables *t, policy_workspace *ws, gl_error *err);
void lab_form_fini(lab_form *f);

#endif
