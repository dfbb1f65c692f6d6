// Where things are in a document that somebody edits: lines and columns from 1.
import { parseXml } from './xml.js'

/** The line of a place in the text. @param at characters before it */
export function lineAt(text, at) {
  return text.slice(0, at).split('\n').length
}

/** The place of an element. @param path its names from the root: `CORSConfiguration/CORSRule[2]`; undefined if absent */
export function elementAt(text, path) {
  const [, ...steps] = path.split('/')
  const found = steps.reduce((element, step) => {
    const [, name, number = '1'] = /^([^[]+)(?:\[(\d+)\])?$/.exec(step) ?? []
    return element?.all(name)[Number(number) - 1] ?? element
  }, parseXml(text))
  return found.at
}

const JSON_TOKEN = /\s*([{}[\],:]|"(?:[^"\\\n]|\\.)*"|-?\d[\d.eE+-]*|true|false|null)/y

/**
 * The places of all values of a JSON document, by their path as in `/Statement/0/Effect`; that of the whole is ''.
 * @returns Map of paths to [begin, end]; throws SyntaxError, whose `at` is the place, for what is no JSON
 */
export function jsonPlaces(text) {
  const places = new Map()
  let at = 0
  const refuse = (why, where = at) => {
    throw Object.assign(new SyntaxError(`This is no JSON document: ${why}.`), { at: where })
  }
  const next = () => {
    JSON_TOKEN.lastIndex = at
    const token = JSON_TOKEN.exec(text)?.[1]
    const begin = token === undefined ? at + /^\s*/.exec(text.slice(at))[0].length : JSON_TOKEN.lastIndex - token.length
    if (token !== undefined) at = JSON_TOKEN.lastIndex
    return { token, begin }
  }
  const peek = () => {
    const before = at
    const { token } = next()
    at = before
    return token
  }
  const expect = (...wanted) => {
    const { token, begin } = next()
    if (!wanted.includes(token)) refuse(`it needs ${wanted.join(' or ')} here`, begin)
    return token
  }
  const readMany = (close, readOne) => {
    if (peek() === close) return next()
    do readOne()
    while (expect(',', close) === ',')
  }
  const read = (path) => {
    const { token, begin } = next()
    let count = 0
    if (token === '[') readMany(']', () => read(`${path}/${count++}`))
    else if (token === '{')
      readMany('}', () => {
        const name = next()
        if (!name.token?.startsWith('"')) refuse('it needs a name in quotes here', name.begin)
        expect(':')
        read(`${path}/${text.slice(name.begin + 1, at).replace(/"\s*:$/, '')}`)
      })
    else if (token === undefined || /^[}\],:]$/.test(token)) refuse('it needs a value here', begin)
    places.set(path, [begin, at])
  }
  read('')
  if (text.slice(at).trim() !== '') refuse('nothing may follow it', at + /^\s*/.exec(text.slice(at))[0].length)
  return places
}

/**
 * What is wrong with a document before anybody is asked: [{ level, line, message }], empty for one that can be read.
 * @param json false for XML
 */
export function syntaxFindings(text, json) {
  try {
    if (json) {
      jsonPlaces(text)
      JSON.parse(text)
    } else parseXml(text.trim())
    return []
  } catch (error) {
    // The place of the browser is in its message alone.
    const stated = error.at ?? Number(/position (\d+)/.exec(error.message)?.[1] ?? 0)
    const at = json ? stated : stated + text.length - text.trimStart().length
    return [{ level: 'error', line: lineAt(text, at), message: error.message }]
  }
}

/** What the server has refused, each beside its line. @returns findings, as of `syntaxFindings`, with `code` */
export function refusalsOf(text, json, { message, code, fields = {} }) {
  const all = Array.isArray(fields.Violations) ? fields.Violations : [message]
  return all.map((one) => refusalOf(text, json, { message: one, code, fields }))
}

/** By the place that the server names, else by the words that it quotes. */
function refusalOf(text, json, { message, code, fields }) {
  const { Path, Line, ArgumentName } = fields
  const finding = { level: 'error', code, message }
  if (Line !== undefined) return { ...finding, line: Math.min(Number(Line), lineAt(text, text.length)) }
  try {
    const at = Path === undefined || json ? 0 : (elementAt(text, Path) ?? 0)
    const end = at > 0 && !json ? endOf(text, at) : text.length
    // Behind the name of the element itself, which most messages have.
    const from = at + (json ? 0 : Math.max(text.slice(at).indexOf('>'), 0))
    const words = [ArgumentName, message].filter(Boolean)
    const line = words.map((word) => lineOf(text, from, end, word, json)).find((one) => one !== undefined)
    return { ...finding, line: line ?? (at > 0 || Path !== undefined ? lineAt(text, at) : undefined) }
  } catch {
    return finding
  }
}

/** Where the element ends that begins at a place. */
function endOf(text, at) {
  const name = /^<([^\s/>]+)/.exec(text.slice(at))?.[1] ?? ''
  const close = text.indexOf(`</${name}>`, at)
  return close === -1 ? text.length : close
}

/**
 * The line of the longest text or name between two places that a message quotes; undefined if it quotes none, or one
 * that is there more than once.
 */
export function lineOf(text, from, to, message, json) {
  const pattern = json ? /"((?:[^"\\\n]|\\.)+)"/g : /<([\w-]+)|>([^<>\s][^<>]*)</g
  const words = [...text.slice(from, to).matchAll(pattern)]
    .map((match) => ({ word: match[1] ?? match[2], at: from + match.index + (match[2] ? 1 : 0) }))
    .filter(({ word }) => word.length > 1 && quotes(message, word))
    .sort((one, other) => other.word.length - one.word.length)
  const [first] = words
  if (first === undefined || words.filter(({ word }) => word === first.word).length > 1) return undefined
  return lineAt(text, first.at)
}

/** Whether a message has the word, and not only as a part of another one. */
function quotes(message, word) {
  const at = message.indexOf(word)
  return at !== -1 && !/\w/.test((message[at - 1] ?? ' ') + (message[at + word.length] ?? ' '))
}
