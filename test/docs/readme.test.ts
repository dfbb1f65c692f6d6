import { readFileSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { readRuns } from '../../bench/results/runs.js'
import { performanceTables } from '../../bench/results/tables.js'
import { builtInPlugins as loadBuiltIns } from '../../cli/built-in-plugins.js'
import { defaultText } from '../../cli/command.js'
import { allCommands, sentence, treeOf } from '../../cli/completion/command-tree.js'
import { flagOf, nameOf as nameInFile, type Option, optionNames, options, variableOf } from '../../cli/config/config.js'
import { manualPages } from '../../cli/man.js'
import { createProgram } from '../../cli/program.js'
import { codes } from '../../common/errors/codes.js'
import { type DocumentFields, documents } from '../../common/service-documents.js'
import { ownFields } from '../../plugins/inventory/columns.js'
import { quirks } from '../../services/gateway/legacy/quirks.js'
import { subjects } from '../../services/platform/routes/index.js'
import type { AnyOperation } from '../../src/api/operation.js'
import { makePlugin } from '../../src/plugins/define-plugin.js'
import { optionFacts } from '../../src/plugins/option-facts.js'
import { routeText } from '../../src/plugins/table.js'
import { refusedOperations } from '../../src/s3/refused.js'
import { allOperations } from '../support/server/all-operations.js'
import { brokenLinks, linkedFrom } from './links.js'
import { pages } from './pages.js'

const builtInPlugins = await loadBuiltIns()

const UPDATE = process.env.UPDATE_README === '1'

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => '---'), ...rows]
    .map((cells) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`)
    .join('\n')
}

function optionTable(): string {
  const rows = optionNames.map((name) => {
    const { kind, unit, help }: Option = options[name]
    const value = [kind.accepts, unit].filter(Boolean).join(' ') + (kind.repeatable ? '; may be repeated' : '')
    return [
      `\`${flagOf(name)}\``,
      `\`${variableOf(name)}\``,
      `\`${nameInFile(name)}\``,
      value,
      code(defaultText(name)),
      help,
    ]
  })
  return table(['flag', 'variable', 'in the file', 'value', 'default', ''], rows)
}

/** Every command with what it takes besides the options of the configuration. */
function commandTable(): string {
  const rows = allCommands(treeOf(createProgram())).filter(({ commands }) => commands.length === 0)
  return table(
    ['command', 'what it does', 'own options'],
    rows.map(({ path, operands, flags, help }) => [
      `\`${['dealgate', path, ...operands.map(({ name, required }) => (required ? `<${name}>` : `[${name}]`))].join(' ')}\``,
      sentence(help),
      flags
        .filter(({ facts, long }) => facts === undefined && !['--config', '--help', '--no-plugins'].includes(long))
        .map(({ long }) => `\`${long}\``)
        .join(', '),
    ]),
  )
}

function operationTable(operations: readonly AnyOperation[]): string {
  const sorted = [...operations].sort((a, b) => (a.name < b.name ? -1 : 1))
  return table(
    ['operation', 'request'],
    sorted.map((operation) => [nameOf(operation), `\`${routeText(operation)}\``]),
  )
}

/** The name, with a link from a page of docs/reference. */
function nameOf({ name, source }: AnyOperation): string {
  return `[${name}](${source.replace(/^docs\//, '../')})`
}

function code(text: string): string {
  return text === '' ? '' : `\`${text}\``
}

function quirkTable(): string {
  return table(
    ['quirk', 'the gateway then'],
    Object.entries(quirks).map(([name, what]) => [`\`${name}\``, what]),
  )
}

function errorTable(): string {
  return table(
    ['code', 'status', 'text'],
    Object.entries(codes)
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([code, { status, message }]) => [`\`${code}\``, String(status), message]),
  )
}

/** How answers show the values of each kind, and what that means. */
const VALUES: Readonly<Record<string, readonly [type: string, meaning?: string]>> = {
  text: ['text'],
  nullableText: ['text or null'],
  count: ['integer'],
  amount: ['number'],
  nullableNumber: ['integer or null'],
  flag: ['true or false'],
  bit: ['1 or 0'],
  seconds: ['integer', 'Unix seconds; 0 for never.'],
  statistic: ['text', 'A number with its unit.'],
}

function documentTable(): string {
  const all: [string, DocumentFields][] = Object.entries(documents)
  const rows = all.flatMap(([document, fields]) =>
    Object.entries(fields).map(([name, field]) => {
      const [kind, meaning] = typeof field === 'string' ? [field] : field
      const [type = '', usual = ''] = VALUES[kind] ?? []
      return [document, `\`${name}\``, type, meaning ?? usual]
    }),
  )
  return table(['document', 'member', 'value', ''], rows)
}

function pluginTables(): string {
  const options = builtInPlugins.flatMap(({ definition }) =>
    optionFacts(definition.options).map((option) => [
      `\`${definition.name}\``,
      `\`${option.name}\``,
      option.accepts,
      option.required ? 'required' : code(option.default),
      option.description,
    ]),
  )
  const operations = builtInPlugins.flatMap(({ definition }) =>
    makePlugin(definition, undefined).operations.map((operation) => [
      `\`${definition.name}\``,
      nameOf(operation),
      `\`${routeText(operation)}\``,
      operation.call?.summary ?? '',
    ]),
  )
  const plugins = builtInPlugins.map(({ definition }) => [`\`${definition.name}\``, definition.summary ?? ''])
  const tables: [head: string[], rows: string[][]][] = [
    [['plugin', 'what it is for'], plugins],
    [['plugin', 'option', 'value', 'default', ''], options],
    [['plugin', 'operation', 'request', ''], operations],
  ]
  return tables
    .filter(([, rows]) => rows.length > 0)
    .map(([head, rows]) => table(head, rows))
    .join('\n\n')
}

/** The fields of inventories that S3 does not have. */
function fieldTable(): string {
  const fields = ownFields(
    builtInPlugins.flatMap(({ definition }) => makePlugin(definition, undefined).inventory ?? []),
  )
  return table(
    ['field', ''],
    fields.map(({ name, summary }) => [`\`${name}\``, summary]),
  )
}

/** The endpoints of the task platform. Paths as documents write them: `{task_uuid}`. */
function endpointTable(): string {
  const rows = Object.values(subjects)
    .flat()
    .map(({ method, path, access, summary }) => [
      `\`${method} ${path.replaceAll(/:(\w+)/g, '{$1}')}\``,
      access,
      summary,
    ])
  return table(['call', 'who may', 'what it does'], rows)
}

/** The block of that name in a document must be this table; with UPDATE_README=1 it is made so. */
function compare(document: string, name: string, expected: string): void {
  const text = readFileSync(document, 'utf8')
  const block = new RegExp(`(<!-- ${name}:.*-->\n)([\\s\\S]*?)(<!-- /${name} -->)`)
  if (UPDATE)
    writeFileSync(
      document,
      text.replace(block, (_, opening, __, closing) => `${opening}\n${expected}\n\n${closing}`),
    )
  else t.equal(block.exec(text)?.[2]?.trim(), expected, `table of ${name} in ${document}: npm run tables writes it`)
}

compare('docs/reference/options.md', 'options', optionTable())
compare(
  'docs/reference/operations.md',
  'operations',
  operationTable(allOperations.filter((operation) => !refusedOperations.includes(operation))),
)
compare('docs/reference/commands.md', 'commands', commandTable())
compare('docs/reference/plugins.md', 'plugins', pluginTables())
compare('docs/reference/errors.md', 'errors', errorTable())
compare('docs/operations.md', 'quirks', quirkTable())
compare('docs/reference/documents.md', 'documents', documentTable())
compare('docs/tasks.md', 'endpoints', endpointTable())
compare('docs/inventory.md', 'fields', fieldTable())
const [newestRun] = readRuns('bench/results.json')
if (!newestRun) throw new Error('bench/results.json has no run: npm run bench -- --goals')
compare('docs/performance.md', 'performance', performanceTables(newestRun))

const remedies = readFileSync('docs/guides/when-something-fails.md', 'utf8')
t.same(
  [...remedies.matchAll(/^\| (`[A-Z]\w+`[^|]*)\|/gm)]
    .flatMap(([, cell = '']) => [...cell.matchAll(/`([A-Z][A-Za-z]+)`/g)].map(([, code]) => code))
    .filter((code) => !Object.hasOwn(codes, code ?? '')),
  [],
  'each code with a remedy is one of the table',
)

const manifest = JSON.parse(readFileSync('package.json', 'utf8'))
const man = [...manualPages('').keys()].map((name) => `./man/${name}`).sort()
if (UPDATE) writeFileSync('package.json', `${JSON.stringify({ ...manifest, man }, null, 2)}\n`)
else t.same(manifest.man, man, 'package.json names every manual page: npm run tables writes it')

const firstScreen = readFileSync('README.md', 'utf8').split('\n').slice(0, 36).join('\n')
t.match(firstScreen, 'npm install && npm start')
t.match(firstScreen, 'npm install && npm test')
t.match(firstScreen, 's3 ls')

for (const document of [...pages, 'CONTRIBUTING.md', 'CHANGELOG.md', 'SECURITY.md'])
  t.same(brokenLinks(document), [], `links of ${document} lead somewhere`)

const listed = linkedFrom('docs/README.md')
t.same(
  pages.filter((page) => page.startsWith('docs/') && page !== 'docs/README.md' && !listed.includes(page)),
  [],
  'docs/README.md lists every page',
)
