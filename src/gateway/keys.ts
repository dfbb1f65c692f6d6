/** Longest path element of a gateway that keeps objects as files, bytes (NAME_MAX of common file systems). */
const MAX_ELEMENT_BYTES = 255

/**
 * Why a gateway that keeps objects as files cannot hold `key`, as the end of a sentence; undefined when it can.
 * Rules: MinIO RELEASE.2019-09-11, cmd/object-api-utils.go (IsValidObjectName) and the file system below.
 * Such keys are refused by name and never "cleaned", because a cleaned key is another key.
 */
export function whyUnfit(key: string): string | undefined {
  if (key === '') return 'it is empty'
  // A final slash names a folder object, which the gateway can hold.
  const elements = (key.endsWith('/') ? key.slice(0, -1) : key).split('/')
  return unfitText(key) ?? unfitElements(elements)
}

/** As `whyUnfit`, in a sentence for the client. */
export function refusal(key: string): string | undefined {
  const reason = whyUnfit(key)
  return reason === undefined ? undefined : `The object gateway cannot hold this key: ${reason}. Choose another key.`
}

/** What to ask a file-keeping gateway for when keys with this prefix are wanted. */
export interface ListablePrefix {
  readonly ask: string
  /** When true, the answer also holds names without the wanted prefix. */
  readonly filter: boolean
}

/** Undefined when no key of such a gateway can begin with `prefix`. */
export function listablePrefix(prefix: string): ListablePrefix | undefined {
  if (prefix === '') return { ask: '', filter: false }
  const whole = prefix.split('/')
  const begun = whole.pop() ?? ''
  if (unfitText(prefix) || unfitElements(whole) || Buffer.byteLength(begun) > MAX_ELEMENT_BYTES) return undefined
  // `.hidden` begins with `.`, yet the gateway refuses `.` as a prefix: ask for the folder and choose.
  if (begun === '.' || begun === '..') return { ask: prefix.slice(0, prefix.length - begun.length), filter: true }
  return { ask: prefix, filter: false }
}

function unfitText(text: string): string | undefined {
  if (text.includes('\0')) return 'it has a NUL character'
  if (text.includes('\\')) return 'it has a backslash'
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
