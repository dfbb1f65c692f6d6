// Reads and writes the documents of S3. DOMParser cannot: Trusted Types forbid it, and it refuses the control characters
// that keys may contain.

const TOKEN = /<\?[^>]*\?>|<!--[\s\S]*?-->|<!\[CDATA\[([\s\S]*?)\]\]>|<(\/?)([^\s/>]+)[^>]*?(\/?)>|([^<]+)/g
const NAMED = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" }

/** An element of a document. */
class Element {
  constructor(name) {
    this.name = name
    this.children = []
    this.text = ''
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
}

/** Parses a document without a DTD. Throws SyntaxError for what is no document. */
export function parseXml(text) {
  const root = new Element('')
  const open = [root]
  for (const [, data, closes, name, alone, characters] of text.matchAll(TOKEN)) {
    const current = open.at(-1)
    if (data !== undefined) current.text += data
    else if (characters !== undefined) current.text += unescaped(characters)
    else if (closes) {
      if (current.name !== localName(name)) throw new SyntaxError('the answer is no XML document')
      open.pop()
    } else if (name !== undefined) {
      const element = new Element(localName(name))
      current.children.push(element)
      if (!alone) open.push(element)
    }
  }
  if (open.length !== 1 || root.children.length !== 1) throw new SyntaxError('the answer is no XML document')
  return root.children[0]
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
