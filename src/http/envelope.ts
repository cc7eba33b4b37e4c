// The envelope of console calls: {success, message, data}; success carries an empty message.
// Failures get theirs in failures.ts.

export interface Success<T> {
  success: true;
  message: string;
  data: T;
}

export function ok<T>(data: T, message = ""): Success<T> {
  return { success: true, message, data };
}

/** For calls that answer nothing but that they succeeded. */
export function done(message = ""): { success: true; message: string } {
  return { success: true, message };
}
