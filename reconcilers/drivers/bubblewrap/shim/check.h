// `chat2shell-shim check`: what this host lets the shim do, tried in throwaway namespaces, as JSON on stdout.
#pragma once
int check_main(void);
