import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import t from 'tap'
import ts from 'typescript'
import { allCommands, treeOf } from '../../cli/completion/command-tree.js'
import { flagOf, optionNames, variableOf } from '../../cli/config/config.js'
import { createProgram } from '../../cli/program.js'

const V8 = [
  ...['--perf-basic-prof', '--trace-gc-nvp', '--single-threaded-gc', '--no-parallel-scavenge', '--min-semi-space-size'],
  ...['--max-semi-space-size', '--always-sparkplug', '--interrupt-budget', '--expose-gc', '--no-expose-gc'],
]

/** Flags of other programs that pages and messages name. */
const OTHERS: Readonly<Record<string, readonly string[]>> = {
  'aws-cli': [
    ...['--bucket-logging-status', '--prefer', '--max-items', '--starting-token', '--page-size', '--no-paginate'],
    ...['--skip-destination-validation', '--body', '--ca-cert', '--client-token'],
  ],
  curl: ['--aws-sigv4', '--cacert'],
  restic: ['--retention-mode', '--retention-period', '--extend-object-locks', '--point-in-time'],
  rclone: ['--s3-versions', '--s3-version-at'],
  'Node.js': ['--test', '--no-allocation-site-pretenuring', '--jitless', '--heap-growing-percent', '--import', ...V8],
  bench: [
    '--only',
    '--minutes',
    '--goals',
    '--nodes',
    '--rounds',
    '--size-mib',
    '--keys',
    '--full',
    '--check',
    '--quick',
  ],
  versitygw: ['--keep-alive'],
}

/** What looks like a flag and is the end of a name that S3 reserves. */
const NO_FLAGS = ['--ol-s3', '--x-s3', '--table-s3']

const commands = allCommands(treeOf(createProgram()))
const known = new Set([
  ...[...optionNames.map(flagOf), ...commands.flatMap(({ flags }) => flags.map(({ long }) => long))],
  ...['--version', '--help', ...NO_FLAGS, ...Object.values(OTHERS).flat()],
])
/** Variables that are no options: the config file, and what a server tells the processes that it starts. */
const variables = new Set([...optionNames.map(variableOf), 'DEALGATE_CONFIG', 'DEALGATE_WORKER_NUMBER'])

const FLAG = /(?<![\w-])--[a-z][a-z0-9-]*[a-z0-9]/g

function isKnown(flag: string): boolean {
  return known.has(flag) || known.has(flag.replace(/^--no-/, '--'))
}

const tracked = (...folders: string[]) =>
  execFileSync('git', ['ls-files', ...folders], { encoding: 'utf8' })
    .trim()
    .split('\n')

/** The spans of code in a page that are a flag, or a command of dealgate. */
function spansOf(page: string): string[] {
  return [...page.matchAll(/`([^`\n]+)`/g)].flatMap(([, span = '']) => (/^(--|dealgate )/.test(span) ? [span] : []))
}

/** The texts in a program, without its comments. */
function textsOf(path: string): string[] {
  const source = ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.Latest)
  const texts: string[] = []
  const visit = (node: ts.Node): void => {
    if (ts.isStringLiteralLike(node) || ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node))
      texts.push(node.text)
    ts.forEachChild(node, visit)
  }
  visit(source)
  return texts
}

t.test('each flag that a page names exists', async (t) => {
  const unknown = tracked('docs', 'README.md', 'plugins', 'services')
    .filter((path) => path.endsWith('.md'))
    .flatMap((path) =>
      spansOf(readFileSync(path, 'utf8')).flatMap((span) =>
        (span.match(FLAG) ?? []).filter((flag) => !isKnown(flag)).map((flag) => `${path}: ${flag}`),
      ),
    )
  t.same([...new Set(unknown)], [])
})

t.test('each flag and variable that a message or a description names exists', async (t) => {
  const unknown: string[] = []
  let seen = 0
  for (const path of tracked('common', 'services', 'src', 'plugins', 'cli').filter((one) => one.endsWith('.ts')))
    for (const text of textsOf(path)) {
      const flags = text.match(FLAG) ?? []
      seen += flags.length
      for (const flag of flags) if (!isKnown(flag)) unknown.push(`${path}: ${flag}`)
      for (const variable of text.match(/\bDEALGATE_[A-Z_]+[A-Z]\b(?!=)/g) ?? [])
        if (!variables.has(variable)) unknown.push(`${path}: ${variable}`)
    }
  t.same([...new Set(unknown)], [])
  t.ok(seen > 100, `the texts name ${seen} flags`)
})
