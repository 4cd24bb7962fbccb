package sonde;

/** The functions of libsonde, in libsonde_java.so (sonde_java.c). */
final class Native {
    /** The reason why the library could not be loaded, and sonde is off; null if it was loaded. */
    static final String PROBLEM = load();

    private Native() {
    }

    private static String load() {
        try {
            System.loadLibrary("sonde_java");
            return null;
        } catch (UnsatisfiedLinkError | SecurityException e) {
            String problem = "sonde records nothing of this program: " + e.getMessage()
                    + "; pass -Djava.library.path=FOLDER of libsonde_java.so";
            if (System.getenv("SONDE_LOG") != null) {
                System.err.println("sonde: warning: " + problem);
            }
            return problem;
        }
    }

    static boolean isOn() {
        return PROBLEM == null && level() > 0;
    }

    static native int level();

    static native long dropped();

    static native String check();

    static native int connect(byte[] path, int level);

    static native int define(byte[] name, int tags, byte[] details, int kind, int level);

    static native int group(int[] metrics);

    static native void put(int metric, double value);

    static native void putAt(int metric, double value, long timeNs);

    static native void set(int metric, double value);

    static native void add(int metric, double amount);

    static native void row(int group, double[] values);

    static native void rowAt(int group, double[] values, long timeNs);

    static native void spanOpen(byte[] name, int tags, long[] parent, long[] out);

    static native void spanClose(long[] span, byte[] name, int tags);

    static native void spanAt(byte[] name, int tags, long startNs, long endNs);

    static native void annotate(byte[] text, int tags);

    static native void config(byte[] parameters, int count);
}
