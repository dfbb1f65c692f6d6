/** One failed assertion or test: the file, the names of the tests around it, and its diagnostics. */
interface Failure {
  readonly file: string
  readonly name: string
  readonly details: readonly string[]
}

const SUBTEST = /^( *)# Subtest: (.*)$/
const FAILED = /^( *)not ok \d+(?: - (.*?))?(?: # time=\S+)?$/
/** Diagnostics that repeat where the test stands and how it was started. */
const NOISE = /^(args|at|command|compare|cwd|externalID|source|stack|stdio):/

/**
 * The failures in the TAP output of a whole run, where each file is a subtest of the run. A test that failed only by
 * its subtests is not listed itself.
 */
export function failuresIn(lines: Iterable<string>): Failure[] {
  const found: Failure[] = []
  const names: string[] = []
  // Tests that contain a listed failure: their own results follow it.
  const failedBelow = new Set<string>()
  let details: string[] = []
  let indent = ''
  let quoting = false
  for (const line of lines) {
    if (quoting) {
      quoting = line !== `${indent}  ...`
      if (quoting) details.push(line.slice(indent.length + 2))
      continue
    }
    if (line === `${indent}  ---`) {
      quoting = true
      continue
    }
    const [, margin = '', begun] = SUBTEST.exec(line) ?? []
    if (begun !== undefined) {
      names.splice(margin.length / 4, names.length, begun)
      continue
    }
    const failed = FAILED.exec(line)
    if (!failed || / # (TODO|SKIP)/i.test(line)) continue
    const [, space = '', own = 'failed'] = failed
    indent = space
    const path = [...names.slice(0, indent.length / 4), own]
    const key = path.join('\n')
    for (let depth = 1; depth < path.length; depth++) failedBelow.add(path.slice(0, depth).join('\n'))
    details = []
    if (failedBelow.has(key)) continue
    found.push({ file: path[0] ?? own, name: path.slice(1).join(' > '), details })
  }
  return found
}

/** The failures by file, in at most `limit` lines, so that the end of a long log contains them. */
export function failureList(failures: readonly Failure[], limit: number): string[] {
  if (failures.length === 0) return []
  const files = new Map<string, Failure[]>()
  for (const failure of failures) files.set(failure.file, [...(files.get(failure.file) ?? []), failure])
  const names = failures.length + files.size
  const each = Math.max(0, Math.floor((limit - 2 - names) / failures.length))
  const lines = [`${failures.length} failures in ${files.size} files:`]
  for (const [file, ofFile] of files) {
    lines.push(`FAILED ${file}`)
    for (const { name, details } of ofFile) {
      lines.push(`  ${name || 'the file itself'}${position(details)}`)
      lines.push(
        ...telling(details)
          .slice(0, each)
          .map((line) => `      ${line.slice(0, 200)}`),
      )
    }
  }
  if (lines.length <= limit) return lines
  return [...lines.slice(0, limit - 1), '... and more: see .tap/test-results']
}

/** The position in the compiled file, if tap gives one. */
function position(details: readonly string[]): string {
  const of = (key: string) => details.map((line) => line.split(`  ${key}: `)[1]).find((value) => value)
  const file = of('fileName')
  return file ? ` (${file}:${of('lineNumber')})` : ''
}

function telling(details: readonly string[]): string[] {
  let block: 'kept' | 'left out' = 'kept'
  return details.filter((line) => {
    if (!line.startsWith(' ')) block = NOISE.test(line) ? 'left out' : 'kept'
    return block === 'kept' && line.trim() !== ''
  })
}
