import { existsSync, readFileSync } from 'node:fs'
import { SourceMap } from 'node:module'
import { dirname, relative, resolve } from 'node:path'

/** `<bundle>:<line>:<column>`, as stacks have it. */
const IN_STACK = /(?:file:\/\/)?([^\s()'"]*\.tap\/bundle-[^\s():'"]+\.js):(\d+):(\d+)/g
/** The same in the diagnostics of tap, on three lines. */
const IN_DIAGNOSTICS = /(fileName: )(\S*\.tap\/bundle-\S+\.js)(\s+lineNumber: )(\d+)(\s+columnNumber: )(\d+)/g

/**
 * Puts the positions in sources for those in bundles. Node does so, too, with `--enable-source-maps`, but for each
 * assertion: a fifth of the CPU time of a short test. Call it for the output of a failed file.
 */
export function inSources(output: string): string {
  const maps = new Map<string, SourceMap | undefined>()
  const find = (bundle: string, line: string, column: string): Position | undefined => {
    if (!maps.has(bundle)) maps.set(bundle, mapOf(bundle))
    const entry = maps.get(bundle)?.findEntry(Number(line) - 1, Number(column) - 1)
    if (entry === undefined || !('originalSource' in entry)) return undefined
    const file = relative('.', resolve(dirname(bundle), entry.originalSource))
    return { file, line: entry.originalLine + 1, column: entry.originalColumn + 1 }
  }
  return output
    .replace(IN_STACK, (all, bundle, line, column) => {
      const at = find(bundle, line, column)
      return at ? `${at.file}:${at.line}:${at.column}` : all
    })
    .replace(IN_DIAGNOSTICS, (all, name, bundle, beforeLine, line, beforeColumn, column) => {
      const at = find(bundle, line, column)
      return at ? name + at.file + beforeLine + at.line + beforeColumn + at.column : all
    })
}

interface Position {
  readonly file: string
  readonly line: number
  readonly column: number
}

function mapOf(bundle: string): SourceMap | undefined {
  const file = `${bundle}.map`
  return existsSync(file) ? new SourceMap(JSON.parse(readFileSync(file, 'utf8'))) : undefined
}
