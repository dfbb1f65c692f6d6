/** A key that servers and clients stumble over. */
export interface OddKey {
  readonly key: string
  /** What a gateway that keeps objects as files says of it: such a key is refused by name, never changed. */
  readonly legacyRefusal?: RegExp
}

/** Keys that are also paths of files, so that clients which copy folders can carry them. */
export const fileKeys: readonly string[] = [
  ...['with space.txt', ' leading and trailing space ', 'two  spaces/in a folder/x', 'plus+plus'],
  ...['percent%41%2F%zz%', 'amp&ersand=equals?question#hash', `quotes'"brackets()[]{}<>`],
  ...['tilde~star*bang!at@dollar$caret^comma,semi;colon:pipe|back`tick', 'dot.and.dots..in...names'],
  ...['.hidden/.folder', 'umlaut-äöü-ß/naïve', 'astral-😀𝒳𠜎/🏴‍☠️', 'combining-é-Å', 'composed-é-Å'],
  ...['日本語/한국어/עברית/العربية', 'deep/a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p', 'UPPER/lower/Upper'],
]

/** Keys that no file can have, or that only some clients can write. */
export const bareKeys: readonly OddKey[] = [
  { key: 'slashes//in//the//middle', legacyRefusal: /"\/\/"/ },
  { key: '/leading-slash', legacyRefusal: /begins with "\/"/ },
  { key: '//two-leading', legacyRefusal: /begins with "\/"/ },
  { key: 'trailing-slashes//', legacyRefusal: /"\/\/"/ },
  { key: 'dots/../up', legacyRefusal: /path element "\.\."/ },
  { key: './here', legacyRefusal: /path element "\."/ },
  { key: '..', legacyRefusal: /path element "\.\."/ },
  { key: 'back\\slash', legacyRefusal: /backslash/ },
  { key: `long-element/${'e'.repeat(300)}`, legacyRefusal: /more than 255 bytes/ },
  { key: 'k'.repeat(1000), legacyRefusal: /more than 255 bytes/ },
  { key: `${'p/'.repeat(400)}${'q'.repeat(200)}` },
]

/** Control characters: a listing can only show them with encoding-type=url. */
export const controlKeys: readonly string[] = [
  'tab\there',
  'line\nfeed',
  'return\rhere',
  'bell\u0007',
  'delete\u007f',
  'unit\u001f',
]

/** An empty object whose name ends in a slash. */
export const MARKER = 'folder-marker/'
