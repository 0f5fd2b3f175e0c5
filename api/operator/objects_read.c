// The handlers that read: objects, events, namespaces.
#include "api/operator/collection.h"

void objects_list(struct call *call)
{
    collection_read(call, resource_of_kind(call->match.kind));
}

void objects_get(struct call *call)
{
    CLEANUP_RECORD struct record *record = operator_resolve_to_read(call, call->match.kind);
    if (record)
        operator_answer_record(call, 200, record);
}

void events_list(struct call *call)
{
    collection_read(call, &resource_events);
}

void events_get(struct call *call)
{
    collection_get(call, &resource_events);
}

void namespaces_list(struct call *call)
{
    collection_read(call, &resource_namespaces);
}

void namespaces_get(struct call *call)
{
    collection_get(call, &resource_namespaces);
}
