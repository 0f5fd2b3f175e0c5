// By itself: callers that only look link nothing else of the approvals.
#include "reconcilers/reconcilers.h"

bool approval_is_waiting(const struct record *approval)
{
    const struct condition *decided = record_condition(approval, CONDITION_DECIDED);
    return approval->spec.approval.decision == APPROVAL_PENDING && decided && decided->status == CONDITION_FALSE &&
           decided->observed_generation == approval->meta.generation;
}
