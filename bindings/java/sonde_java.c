// sonde_java.c - the native methods of sonde.Native: sonde.h for Java, for every JDK (JNI).
//
// A name and tags arrive as one block (shim.h), because each object costs a call into the JVM. No
// method leaves an exception: without memory, the call does nothing.
#include "../go/shim.h"

#include <jni.h>

enum { ROW_MAX = 4096 }; // metrics of a group: sonde.h

typedef jbyteArray block;

static const char *block_begin(JNIEnv *env, block from)
{
    jbyte *bytes = (*env)->GetByteArrayElements(env, from, NULL);
    if (!bytes)
        (*env)->ExceptionClear(env);
    return (const char *)bytes;
}

static void block_end(JNIEnv *env, block from, const char *text)
{
    (*env)->ReleaseByteArrayElements(env, from, (jbyte *)(void *)(uintptr_t)text, JNI_ABORT);
}

JNIEXPORT jint JNICALL Java_sonde_Native_level(JNIEnv *env, jclass class)
{
    (void)env, (void)class;
    return sonde_level();
}

JNIEXPORT jlong JNICALL Java_sonde_Native_dropped(JNIEnv *env, jclass class)
{
    (void)env, (void)class;
    return (jlong)sonde_dropped();
}

// Returns NULL if there is no problem.
JNIEXPORT jstring JNICALL Java_sonde_Native_check(JNIEnv *env, jclass class)
{
    char why[1024];
    (void)class;
    return sonde_check(why, sizeof why) == 0 ? NULL : (*env)->NewStringUTF(env, why);
}

JNIEXPORT jint JNICALL Java_sonde_Native_connect(JNIEnv *env, jclass class, block path, jint level)
{
    const char *text = block_begin(env, path);
    (void)class;
    if (!text)
        return -1;
    int status = sonde_connect(text, level);
    block_end(env, path, text);
    return status;
}

// ---------------------------------------------------------------- metrics

JNIEXPORT jint JNICALL Java_sonde_Native_define(JNIEnv *env, jclass class, block name, jint count,
                                                block details, jint kind, jint level)
{
    sonde_handle handle = 0;
    const char *text = block_begin(env, name);
    const char *more = text ? block_begin(env, details) : NULL;
    (void)class;
    if (more)
        handle = shim_define(text, (size_t)count, more, kind, level);
    if (more)
        block_end(env, details, more);
    if (text)
        block_end(env, name, text);
    return (jint)handle;
}

JNIEXPORT jint JNICALL Java_sonde_Native_group(JNIEnv *env, jclass class, jintArray metrics)
{
    // one more than the limit, so that libsonde sees and counts the excess
    jint handles[ROW_MAX + 1];
    jsize count = (*env)->GetArrayLength(env, metrics);
    (void)class;
    if (count > ROW_MAX + 1)
        count = ROW_MAX + 1;
    (*env)->GetIntArrayRegion(env, metrics, 0, count, handles);
    return (jint)sonde_group((const sonde_handle *)handles, (size_t)count);
}

JNIEXPORT void JNICALL Java_sonde_Native_put(JNIEnv *env, jclass class, jint metric, jdouble value)
{
    (void)env, (void)class;
    sonde_put_point((sonde_handle)metric, value);
}

JNIEXPORT void JNICALL Java_sonde_Native_putAt(JNIEnv *env, jclass class, jint metric,
                                               jdouble value, jlong time_ns)
{
    (void)env, (void)class;
    sonde_put_point_at((sonde_handle)metric, value, time_ns);
}

JNIEXPORT void JNICALL Java_sonde_Native_set(JNIEnv *env, jclass class, jint metric, jdouble value)
{
    (void)env, (void)class;
    sonde_cell_set((sonde_handle)metric, value);
}

JNIEXPORT void JNICALL Java_sonde_Native_add(JNIEnv *env, jclass class, jint metric, jdouble amount)
{
    (void)env, (void)class;
    sonde_cell_add((sonde_handle)metric, amount);
}

// `values` has one element for each metric of the group: Group.java ensures it.
JNIEXPORT void JNICALL Java_sonde_Native_row(JNIEnv *env, jclass class, jint group,
                                             jdoubleArray values)
{
    double row[ROW_MAX];
    (void)class;
    (*env)->GetDoubleArrayRegion(env, values, 0, (*env)->GetArrayLength(env, values), row);
    sonde_put_row((sonde_handle)group, row);
}

JNIEXPORT void JNICALL Java_sonde_Native_rowAt(JNIEnv *env, jclass class, jint group,
                                               jdoubleArray values, jlong time_ns)
{
    double row[ROW_MAX];
    (void)class;
    (*env)->GetDoubleArrayRegion(env, values, 0, (*env)->GetArrayLength(env, values), row);
    sonde_put_row_at((sonde_handle)group, row, time_ns);
}

// ---------------------------------------------------------------- events

// A span of Java is a long[4]: id, parent, start, process.
static struct sonde_span from_longs(const jlong longs[4])
{
    return (struct sonde_span){(uint64_t)longs[0], (uint64_t)longs[1], longs[2],
                               (uint32_t)longs[3]};
}

// `parent` may be null. Fills in `out`; its id stays 0 if the span is not recorded.
JNIEXPORT void JNICALL Java_sonde_Native_spanOpen(JNIEnv *env, jclass class, block name, jint count,
                                                  jlongArray parent, jlongArray out)
{
    jlong around[4] = {0};
    const char *text = block_begin(env, name);
    (void)class;
    if (!text)
        return;
    if (parent)
        (*env)->GetLongArrayRegion(env, parent, 0, 4, around);
    struct sonde_span span = shim_span_open(text, (size_t)count, from_longs(around));
    block_end(env, name, text);
    const jlong longs[4] = {(jlong)span.id, (jlong)span.parent, span.start, span.process};
    (*env)->SetLongArrayRegion(env, out, 0, 4, longs);
}

JNIEXPORT void JNICALL Java_sonde_Native_spanClose(JNIEnv *env, jclass class, jlongArray span,
                                                   block name, jint count)
{
    jlong longs[4];
    const char *text = block_begin(env, name);
    (void)class;
    if (!text)
        return;
    (*env)->GetLongArrayRegion(env, span, 0, 4, longs);
    shim_span_close(from_longs(longs), text, (size_t)count);
    block_end(env, name, text);
}

JNIEXPORT void JNICALL Java_sonde_Native_spanAt(JNIEnv *env, jclass class, block name, jint count,
                                                jlong start_ns, jlong end_ns)
{
    const char *text = block_begin(env, name);
    (void)class;
    if (!text)
        return;
    shim_span_at(text, (size_t)count, start_ns, end_ns);
    block_end(env, name, text);
}

JNIEXPORT void JNICALL Java_sonde_Native_annotate(JNIEnv *env, jclass class, block words,
                                                  jint count)
{
    const char *text = block_begin(env, words);
    (void)class;
    if (!text)
        return;
    shim_annotate(text, (size_t)count);
    block_end(env, words, text);
}

JNIEXPORT void JNICALL Java_sonde_Native_config(JNIEnv *env, jclass class, block parameters,
                                                jint count)
{
    const char *text = block_begin(env, parameters);
    (void)class;
    if (!text)
        return;
    shim_config(text, (size_t)count);
    block_end(env, parameters, text);
}
