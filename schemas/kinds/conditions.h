// Condition types: the words of status.conditions[].type. Each is written by the owning reconciler only.
#pragma once

#define CONDITION_READY "Ready"                     // can be used now
#define CONDITION_RUNTIME_CREATED "RuntimeCreated"  // Sandbox: the driver's runtime exists
#define CONDITION_SESSION_READY "SessionReady"      // Sandbox: its tool server answers
#define CONDITION_LIMITS_ENFORCED "LimitsEnforced"  // Sandbox: memory, pids and cpu limits hold; False names which do not
#define CONDITION_ISOLATED "Isolated"               // Sandbox: the probe inside verified each hard rule
#define CONDITION_RUNTIME_REMOVED "RuntimeRemoved"  // Sandbox: the runtime is confirmed gone
#define CONDITION_FAILED "Failed"                   // will not become ready by itself
#define CONDITION_STALLED "Stalled"                 // cannot progress; the message says the way out
#define CONDITION_REF_NOT_FOUND "RefNotFound"       // a name in spec names no live record
#define CONDITION_EXPIRED "Expired"                 // Sandbox: 24 hours without a tool call. ApprovalRule: its time is over
#define CONDITION_EXHAUSTED "Exhausted"             // ApprovalRule: it has decided as often as it may
#define CONDITION_DISK_PRESSURE "DiskPressure"      // too little free space to create
#define CONDITION_DECIDED "Decided"                 // Approval: an operator decided
#define CONDITION_VALID "Valid"                     // Approval: the path is still the directory that was shown
#define CONDITION_REVOKED "Revoked"                 // Approval, host Workspace: taken back
#define CONDITION_RETAINED "Retained"               // managed Workspace: kept after its sandbox ended
#define CONDITION_TRASHED "Trashed"                 // managed Workspace: moved to the trash
#define CONDITION_PUBLISHED "Published"             // Exposure: the host port is bound
#define CONDITION_REACHABLE "Reachable"             // Exposure: something answers behind the port
