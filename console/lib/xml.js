// Reads and writes the documents of S3. DOMParser cannot: Trusted Types forbid it, and it refuses the control characters
// that keys may contain.

const TOKEN = /<\?[^>]*\?>|<!--[\s\S]*?-->|<!\[CDATA\[([\s\S]*?)\]\]>|<(\/?)([^\s/>]+)([^>]*?)(\/?)>|([^<]+)/g
const NAMED = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" }

/** An element of a document. As a string it is written again, with all that was read. */
export class Element {
  /** @param content text, or elements; @param attributes as they are written, with a space before each */
  constructor(name, content = '', attributes = '') {
    this.name = name
    this.attributes = attributes
    this.children = Array.isArray(content) ? content : []
    this.text = Array.isArray(content) ? '' : content
    /** Where the element began in the text that it was read from; undefined for one that was made. */
    this.at = undefined
  }

  /** The first child of this name; undefined if there is none. */
  child(name) {
    return this.children.find((child) => child.name === name)
  }

  all(name) {
    return this.children.filter((child) => child.name === name)
  }

  /** The text of the element at this path of names; undefined if there is none. */
  get(...names) {
    return names.reduce((element, name) => element?.child(name), this)?.text
  }

  /** Puts others in the place of all children of this name. @param contents elements, or texts of new ones */
  replace(name, contents) {
    const made = contents.map((content) => (content instanceof Element ? content : new Element(name, content)))
    const at = this.children.findIndex((child) => child.name === name)
    const others = this.children.filter((child) => child.name !== name)
    this.children = others.toSpliced(at === -1 ? others.length : at, 0, ...made)
  }

  toString() {
    const content = this.children.length > 0 ? this.children.join('') : escaped(this.text)
    return `<${this.name}${this.attributes}>${content}</${this.name}>`
  }
}

/** Parses a document without a DTD. Throws SyntaxError for what is no document, whose `at` is the place in the text. */
export function parseXml(text) {
  const root = new Element('')
  const open = [root]
  let end = 0
  for (const match of text.matchAll(TOKEN)) {
    const [whole, data, closes, name, attributes, alone, characters] = match
    if (match.index !== end) break
    end += whole.length
    const current = open.at(-1)
    if (data !== undefined) current.text += data
    else if (characters !== undefined) current.text += unescaped(characters)
    else if (closes) {
      if (current.name !== localName(name)) throw noXml(`</${name}> closes nothing that is open`, match.index)
      open.pop()
    } else if (name !== undefined) {
      const element = new Element(localName(name), '', attributes)
      element.at = match.index
      current.children.push(element)
      if (!alone) open.push(element)
    }
  }
  if (end !== text.length) throw noXml('this < begins no element', end)
  if (open.length !== 1) throw noXml(`<${open.at(-1).name}> is not closed`, open.at(-1).at)
  if (root.children.length !== 1) throw noXml('it needs one element around all others', root.children[1]?.at ?? 0)
  return root.children[0]
}

function noXml(why, at) {
  return Object.assign(new SyntaxError(`This is no XML document: ${why}.`), { at })
}

function localName(name) {
  return name.slice(name.indexOf(':') + 1)
}

function unescaped(text) {
  return text.replace(/&(?:#x([0-9a-f]+)|#(\d+)|(\w+));/gi, (whole, digits, decimal, name) => {
    if (name !== undefined) return NAMED[name] ?? whole
    const code = digits === undefined ? Number(decimal) : Number.parseInt(digits, 16)
    return code <= 0x10ffff ? String.fromCodePoint(code) : whole
  })
}

/** True if a document can contain the text: https://www.w3.org/TR/xml/#charsets */
export function fitsXml(text) {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what a document cannot contain
  return !/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/.test(text) && text.isWellFormed()
}

/** An element with text, or with elements that are written already. @param content text, or an array of elements */
export function element(name, content) {
  return `<${name}>${Array.isArray(content) ? content.join('') : escaped(String(content))}</${name}>`
}

function escaped(text) {
  return text.replace(/[&<>"\r]/g, (c) => `&#${c.charCodeAt(0)};`)
}
