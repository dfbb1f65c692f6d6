/** Longest path element on a gateway that keeps objects as files, bytes (NAME_MAX of common file systems). */
const MAX_ELEMENT_BYTES = 255

/**
 * The reason why a gateway that keeps objects as files cannot store `key`, as the end of a sentence; undefined when it
 * can. Rules: MinIO RELEASE.2019-09-11, cmd/object-api-utils.go (IsValidObjectName) and the file system below. Such
 * keys are refused and never "cleaned", because a cleaned key is another key.
 */
export function whyUnfit(key: string): string | undefined {
  if (key === '') return 'it is empty'
  // A final slash names a folder object, which the gateway can store.
  const elements = (key.endsWith('/') ? key.slice(0, -1) : key).split('/')
  return unfitText(key) ?? unfitElements(elements)
}

/** Like `whyUnfit`, as a complete message for the client. */
export function refusal(key: string): string | undefined {
  const reason = whyUnfit(key)
  return reason === undefined ? undefined : `The object gateway cannot hold this key: ${reason}. Choose another key.`
}

/**
 * True for a key or prefix with a path element `.` or `..`. Anything on the way to the gateway may resolve it as a
 * path, and so reach a key outside the prefix, or the bucket, that a rule names.
 */
export function hasDotElement(key: string): boolean {
  return /(^|[/\\])\.\.?($|[/\\])/.test(key)
}

/** True for a key that is another one once a path with it has been cleaned: see `ExactPaths`. */
export function isResolvable(key: string): boolean {
  return hasDotElement(key) || key.startsWith('/') || key.includes('//')
}

/** The prefix to request from a gateway that keeps objects as files in order to list keys with a given prefix. */
export interface ListablePrefix {
  readonly ask: string
  /** True when the answer also has names without the given prefix. */
  readonly filter: boolean
}

/** Undefined when no key on such a gateway can begin with `prefix`. */
export function listablePrefix(prefix: string): ListablePrefix | undefined {
  if (prefix === '') return { ask: '', filter: false }
  const whole = prefix.split('/')
  const begun = whole.pop() ?? ''
  if (unfitText(prefix) || unfitElements(whole) || Buffer.byteLength(begun) > MAX_ELEMENT_BYTES) return undefined
  // `.hidden` begins with `.`, which the gateway refuses as a prefix: request the folder and filter.
  if (begun === '.' || begun === '..') return { ask: prefix.slice(0, prefix.length - begun.length), filter: true }
  return { ask: prefix, filter: false }
}

/**
 * True for a prefix, or a key, that selects a part of a bucket's root. MinIO RELEASE.2021-06-17 on several drives
 * sometimes answers such listings, when several clients list at a time, with objects as folders and without folders.
 * Listings of a whole level are correct.
 */
export function isPartOfRoot(prefix: string): boolean {
  return prefix !== '' && !prefix.slice(0, -1).includes('/')
}

function unfitText(text: string): string | undefined {
  if (text.includes('\0')) return 'it contains a NUL character'
  if (text.includes('\\')) return 'it contains a backslash'
  if (text.startsWith('/')) return 'it begins with "/"'
  return undefined
}

function unfitElements(elements: readonly string[]): string | undefined {
  for (const element of elements) {
    if (element === '') return 'it has "//", an empty path element'
    if (element === '.' || element === '..') return `it has the path element "${element}"`
    if (Buffer.byteLength(element) > MAX_ELEMENT_BYTES) {
      return `it has a path element of more than ${MAX_ELEMENT_BYTES} bytes`
    }
  }
  return undefined
}
