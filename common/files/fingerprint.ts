import { statSync } from 'node:fs'

/** The fingerprint of a file that does not exist. */
export const ABSENT = 'absent'

/**
 * A text that changes whenever the file is written or replaced; the code of the error if it cannot be examined.
 * Contains times in nanoseconds, and the inode for a rename within one tick of the clock.
 */
export function fingerprint(file: string): string {
  try {
    const found = statSync(file, { bigint: true, throwIfNoEntry: false })
    return found ? `${found.ino}/${found.size}/${found.mtimeNs}/${found.ctimeNs}` : ABSENT
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code)
  }
}
