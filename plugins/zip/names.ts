/** Longest part of a path, bytes in UTF-8: file systems take 255, of which a number takes some where names collide. */
const MAX_PART_BYTES = 240

/** Longest extension that a shortened name keeps, characters. */
const MAX_EXTENSION = 20

/**
 * Characters that no file system of Windows takes, that separate folders somewhere, or that change the order of the
 * text around them, by which `photo[U+202E]gnp.exe` looks like a picture.
 */
const UNSAFE = /[\p{Cc}\p{Cs}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069<>:"|?*\\]/gu

/** Names that Windows takes for devices, with any extension, too. */
const DEVICE = /^(?:con|prn|aux|nul|com[0-9\u00b9\u00b2\u00b3]|lpt[0-9\u00b9\u00b2\u00b3]|conin\$|conout\$) *(?:\.|$)/i

/**
 * Gives each entry of an archive a path that stays in the folder into which the archive is extracted, on every system,
 * and that no other entry has. The same keys in the same order get the same paths.
 */
export class EntryNames {
  /** The paths that are there, as systems compare them that ignore case and forms of Unicode. */
  readonly #taken = new Set<string>()
  /** The folder in the archive for each folder of keys: those below one folder stay together. */
  readonly #folders = new Map<string, string>()
  /** The number that a path gets which is taken already. */
  readonly #next = new Map<string, number>()

  /**
   * The path of an object.
   * @param name its key, below the folder to which names are relative
   * @param holdsBytes false for the mark of a folder: an empty object whose key ends in `/`, which gets a path that
   *   ends so; undefined if the folder is in the archive already
   */
  of(name: string, holdsBytes: boolean): string | undefined {
    const at = name.lastIndexOf('/')
    if (at === name.length - 1 && !holdsBytes) return this.#mark(name)
    return this.#take(`${this.#folder(name.slice(0, at + 1))}${safePart(name.slice(at + 1))}`, 'file')
  }

  /** A name that stands for a whole folder. */
  #mark(name: string): string | undefined {
    if (this.#folders.has(name)) return undefined
    return this.#folder(name)
  }

  /** @param name '' or ends in `/`, as the path that it returns does */
  #folder(name: string): string {
    if (name === '') return ''
    const known = this.#folders.get(name)
    if (known !== undefined) return known
    const at = name.slice(0, -1).lastIndexOf('/')
    const wanted = `${this.#folder(name.slice(0, at + 1))}${safePart(name.slice(at + 1, -1))}`
    const path = `${this.#take(wanted, 'folder')}/`
    this.#folders.set(name, path)
    return path
  }

  #take(wanted: string, as: 'file' | 'folder'): string {
    for (let path = wanted; ; path = this.#numbered(wanted, as)) {
      const compared = comparable(path)
      if (this.#taken.has(compared)) continue
      this.#taken.add(compared)
      return path
    }
  }

  /** `a/b.txt` as `a/b (2).txt`, then (3) and so on. */
  #numbered(path: string, as: 'file' | 'folder'): string {
    const compared = comparable(path)
    const number = (this.#next.get(compared) ?? 1) + 1
    this.#next.set(compared, number)
    const [stem, extension] = as === 'file' ? split(path) : [path, '']
    return `${stem} (${number})${extension}`
  }
}

/** A part of a key as the name of a file or folder. */
function safePart(part: string): string {
  const plain = part.replace(UNSAFE, '_').replace(/[. ]+$/, (end) => '_'.repeat(end.length))
  const short = shortened(plain === '' ? '_' : plain)
  return DEVICE.test(short) ? `_${short}` : short
}

function shortened(name: string): string {
  if (Buffer.byteLength(name) <= MAX_PART_BYTES) return name
  const [stem, extension] = split(name)
  let room = MAX_PART_BYTES - Buffer.byteLength(extension)
  let kept = ''
  for (const character of stem) {
    room -= Buffer.byteLength(character)
    if (room < 0) break
    kept += character
  }
  return `${kept.replace(/[. ]+$/, '_')}${extension}`
}

/** A path without its extension, and that. */
function split(path: string): [stem: string, extension: string] {
  const at = path.lastIndexOf('.')
  const name = path.lastIndexOf('/') + 1
  if (at <= name || path.length - at > MAX_EXTENSION) return [path, '']
  return [path.slice(0, at), path.slice(at)]
}

function comparable(path: string): string {
  return path.normalize('NFC').toLowerCase()
}
