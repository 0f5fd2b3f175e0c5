// A queue of work for the pool's few threads: starting processes, which the loop must not wait for.
#include "reconcilers/drivers/sbx/sbx.h"

void sbx_job_add(struct sbx *sbx, struct job *job)
{
    pthread_mutex_lock(&sbx->jobs_lock);
    job->next = NULL;
    if (sbx->jobs_last)
        sbx->jobs_last->next = job;
    else
        sbx->jobs_first = job;
    sbx->jobs_last = job;
    pthread_mutex_unlock(&sbx->jobs_lock);
    pool_tell(sbx->pool);
}

bool sbx_job_work(void *arg)
{
    struct sbx *sbx = arg;
    pthread_mutex_lock(&sbx->jobs_lock);
    struct job *job = sbx->jobs_first;
    if (job)
        sbx->jobs_first = job->next;
    if (sbx->jobs_first == NULL)
        sbx->jobs_last = NULL;
    bool has_more = sbx->jobs_first != NULL;
    pthread_mutex_unlock(&sbx->jobs_lock);
    if (job == NULL)
        return false;
    pool_took(sbx->pool, has_more);
    job->run(job);
    return true;
}
