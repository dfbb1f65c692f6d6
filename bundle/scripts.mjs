// Turns the CommonJS chunks of the bundler into the scripts that `load.cjs` runs, and entries into files that load
// them.
import { parseAst } from 'rolldown/parseAst'

const HEAD = '(function (exports, require, module, __filename, __dirname, __importModule, __keepCompiled) {'

/** The script of a chunk. Its head adds no line, so that stacks name the lines of the file. */
export function scriptOf(code) {
  return `${HEAD}${withoutImports(asciiText(code.replace(/^#!.*/, '')))}\n})`
}

/** The file of a program, which Node.js starts without its loader of ES modules: that takes 5 ms in each thread. */
export function programOf({ fileName, code }) {
  const shebang = /^#!.*\n/.exec(code)?.[0] ?? ''
  return `${shebang}require('./load.cjs').load('${fileName}')\n`
}

/** The ES module of an entry, whose exports are those of its script. */
export function moduleOf({ fileName, exports }) {
  const names = exports.filter((name) => name !== 'default')
  const lines = [`const entry = load('${fileName}')`]
  if (names.length > 0) lines.push(`export const { ${names.join(', ')} } = entry`)
  if (names.length < exports.length) lines.push('export default entry.default')
  return `import { load } from './load.cjs'\n\n${lines.join('\n')}\n`
}

/** Node.js takes `import()` of a script for an experimental feature, and warns. */
function withoutImports(code) {
  const starts = importsIn(parseAst(code)).sort((a, b) => b - a)
  return starts.reduce((text, at) => `${text.slice(0, at)}__importModule${text.slice(at + 'import'.length)}`, code)
}

/** Where each `import()` starts. */
function importsIn(node) {
  if (node === null || typeof node !== 'object') return []
  if (Array.isArray(node)) return node.flatMap(importsIn)
  const inner = Object.values(node).flatMap(importsIn)
  return node.type === 'ImportExpression' ? [node.start, ...inner] : inner
}

/**
 * Escapes what is not ASCII. V8 keeps the text of a script in memory, with two bytes for each character if a single
 * one needs them. A character behind a backslash stays: in front of an escape, the backslash would escape that of the
 * escape.
 */
function asciiText(code) {
  return code.replace(/(?<!\\)[\u{80}-\u{10ffff}]/gu, (character) =>
    character
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  )
}
