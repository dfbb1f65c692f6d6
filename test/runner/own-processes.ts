import { existsSync, readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

/** The tests that are about the program as a process. */
const ABOUT_PROCESSES = /^test\/(nodes\/)?package\b/
/** The tests that start the program themselves where they look at it as a process. */
const START_PROCESSES = /^test\/docs\//
/** What only a process of its own can give a test: its id, a signal, its memory, its log at the end. */
const LOOKS_AT_PROCESSES = /killed\(|\.pid\b|ManyDeaths|\bSIG(?!NATURE)[A-Z\d]+\b|\brss\b|remount/
/** A test that says which of its servers it looks at or kills leaves the others to a host. */
const NAMES_PROCESSES = /\bownProcess: true\b/
/** What changes or measures the process that several test files would share. */
const CHANGES_PROCESS =
  /process\.(memoryUsage|resourceUsage|umask|chdir|on|once)\(|setFlagsFromString|syncBuiltinESMExports|Date\.now = |\.prototype\.\w+ = |setGlobalDispatcher/
const IMPORT = /from '(\.\.?\/[^']+)\.js'/g
/** Helpers that every file may import: they do nothing with processes of dealgate on their own. */
const SUPPORT = /\/test\/(support|runner)\/|\/test\/state\/(servers|balancers)\.ts$/

/**
 * Whether each server that a test file starts must be a process of its own: its text, or that of a module of the tests
 * that it imports, looks at processes. Servers of other files run in a host.
 * @param file source, such as `test/s3/range.test.ts`
 */
export function needsProcesses(file: string): boolean {
  if (START_PROCESSES.test(file)) return false
  const looks = (text: string) => LOOKS_AT_PROCESSES.test(text) && !NAMES_PROCESSES.test(text)
  return ABOUT_PROCESSES.test(file) || contains(looks, resolve(file), new Set())
}

/** Whether a test file must be the only one that its process runs. */
export function runsAlone(file: string): boolean {
  return contains((text) => CHANGES_PROCESS.test(text), resolve(file), new Set())
}

function contains(wanted: (text: string) => boolean, file: string, seen: Set<string>): boolean {
  if (seen.has(file) || SUPPORT.test(file) || !file.includes('/test/') || !existsSync(file)) return false
  seen.add(file)
  const text = readFileSync(file, 'utf8')
  if (wanted(text)) return true
  return [...text.matchAll(IMPORT)].some(([, path]) => contains(wanted, resolve(dirname(file), `${path}.ts`), seen))
}
