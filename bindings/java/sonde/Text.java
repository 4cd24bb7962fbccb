package sonde;

import java.io.ByteArrayOutputStream;
import java.math.BigDecimal;
import java.math.MathContext;
import java.nio.charset.StandardCharsets;
import java.time.Instant;

/** A name and tags in the form of shim.h: C strings, one after the other. */
final class Text {
    /** libsonde accepts 16 and counts any further one, so it gets at most one more. */
    private static final int TAGS_MAX = 17;

    private final ByteArrayOutputStream bytes = new ByteArrayOutputStream(128);
    private int count;

    Text(String... texts) {
        for (String text : texts) {
            add(text);
        }
    }

    private void add(String text) {
        int end = text.indexOf('\0');
        byte[] encoded = (end < 0 ? text : text.substring(0, end)).getBytes(StandardCharsets.UTF_8);
        bytes.write(encoded, 0, encoded.length);
        bytes.write(0);
    }

    void tag(String key, Object value) {
        if (count < TAGS_MAX) {
            add(key);
            add(format(value));
            count++;
        }
    }

    byte[] block() {
        return bytes.toByteArray();
    }

    int count() {
        return count;
    }

    private static String format(Object value) {
        if (value instanceof Double) {
            return format((Double) value, 15);
        }
        if (value instanceof Float) {
            return format((Float) value, 6);
        }
        return String.valueOf(value);
    }

    /** Returns the shortest form that reads back as the same number: 0.1, 1e-05. */
    private static String format(Number value, int fewestDigits) {
        double number = value.doubleValue();
        if (Double.isNaN(number)) {
            return "nan";
        }
        if (Double.isInfinite(number)) {
            return number > 0 ? "inf" : "-inf";
        }
        if (number == 0) {
            return 1 / number < 0 ? "-0" : "0";
        }
        BigDecimal exact = new BigDecimal(number);
        BigDecimal rounded = exact;
        for (int digits = fewestDigits; digits <= fewestDigits + 3; digits++) {
            rounded = exact.round(new MathContext(digits)).stripTrailingZeros();
            if (value instanceof Float ? rounded.floatValue() == (Float) value
                    : rounded.doubleValue() == number) {
                break;
            }
        }
        int exponent = rounded.precision() - rounded.scale() - 1;
        if (exponent >= -4 && exponent < 15) {
            return rounded.toPlainString();
        }
        String all = rounded.unscaledValue().abs().toString();
        String mantissa = all.length() == 1 ? all : all.charAt(0) + "." + all.substring(1);
        String sign = exponent < 0 ? "-" : "+";
        String padded = (Math.abs(exponent) < 10 ? "0" : "") + Math.abs(exponent);
        return (number < 0 ? "-" : "") + mantissa + "e" + sign + padded;
    }

    /** Instants beyond 64 bits (the year 2262) become the last or the first that fits. */
    static long nanoseconds(Instant time) {
        try {
            return Math.addExact(Math.multiplyExact(time.getEpochSecond(), 1_000_000_000L),
                    time.getNano());
        } catch (ArithmeticException e) {
            return time.getEpochSecond() < 0 ? Long.MIN_VALUE : Long.MAX_VALUE;
        }
    }
}
