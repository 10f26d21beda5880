#ifndef CCURL_SHIM_H
#define CCURL_SHIM_H
#include <curl/curl.h>

// curl_easy_setopt and curl_easy_getinfo take any number of arguments, which Swift cannot call.

typedef size_t (*CCurl_sink)(char *bytes, size_t size, size_t count, void *context);

static inline CURLcode CCurl_set_long(CURL *handle, CURLoption option, long value) { return curl_easy_setopt(handle, option, value); }
static inline CURLcode CCurl_set_size(CURL *handle, CURLoption option, curl_off_t value) { return curl_easy_setopt(handle, option, value); }
static inline CURLcode CCurl_set_text(CURL *handle, CURLoption option, const char *value) { return curl_easy_setopt(handle, option, value); }
static inline CURLcode CCurl_set_bytes(CURL *handle, const void *bytes) { return curl_easy_setopt(handle, CURLOPT_POSTFIELDS, bytes); }
static inline CURLcode CCurl_set_headers(CURL *handle, struct curl_slist *headers) { return curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers); }
static inline CURLcode CCurl_set_sinks(CURL *handle, CCurl_sink body, CCurl_sink header, void *context) {
    curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, body);
    curl_easy_setopt(handle, CURLOPT_WRITEDATA, context);
    curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, header);
    return curl_easy_setopt(handle, CURLOPT_HEADERDATA, context);
}
static inline long CCurl_response_code(CURL *handle) {
    long code = 0;
    curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &code);
    return code;
}
static inline CURLcode CCurl_global_init(void) { return curl_global_init(CURL_GLOBAL_DEFAULT); }
#endif
