import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import ts from 'typescript'

/**
 * Who may import what. Dependencies point one way, and one library is used in one place; the reasons stand beside each
 * rule.
 */
interface Rule {
  readonly rule: string
  /** Files that the rule is about. */
  readonly from: RegExp
  /** What they must not import: `src/xml.ts` for our own files, `npm:xml2js` for packages. */
  readonly never: RegExp
  /** `import type` leaves nothing at run time and is allowed unless this is set. */
  readonly typesToo?: true
}

/** The rooms from the bottom up: a room imports from those before it alone, types included; see the rules, too. */
const ROOMS = [
  'common',
  'src/api',
  'src/http',
  'src/auth',
  'src/state',
  'src/gateway',
  'src/objects',
  'src/plugins',
  'src/access',
  'src/s3',
  'src/server',
  'engines',
  'services',
  'cli',
]
/** The room of a file, -1 for a file of none. */
const roomOf = (file: string) => ROOMS.findIndex((room) => file.startsWith(`${room}/`))

const rules: readonly Rule[] = [
  {
    rule: 'the embedded gateway does not know the layer of quirks in front of it; its assembly does',
    from: /^services\/(?!gateway\/(legacy\/|(assemble|gateway)\.ts$)|index\.ts$)/,
    never: /^services\/gateway\/legacy\//,
    typesToo: true,
  },
  {
    rule: 'the services know the proxy only over HTTP',
    from: /^services\//,
    never: /^(src|plugins|cli)\//,
    typesToo: true,
  },
  {
    rule: 'the proxy knows the services only over HTTP; the command line starts both',
    from: /^(src|plugins|common)\//,
    never: /^services\//,
    typesToo: true,
  },
  {
    rule: 'the door loads the engine of a database by its name alone, so that it runs without those that it does not use',
    from: /^src\//,
    never: /^(engines\/|npm:(pg|@keyv\/))/,
    typesToo: true,
  },
  {
    rule: 'undici is used by the client of services, the webhook client and the Kubo client',
    from: /^(?!common\/(service-client|lazy-dispatcher)\.ts$|src\/plugin\.ts$|plugins\/notifications\/webhook-client\.ts$|services\/network\/kubo\/kubo-client\.ts$)/,
    never: /^(npm:undici|common\/lazy-dispatcher\.ts)$/,
  },
  {
    rule: 'node:http serves in cli/process and services/http, and calls from the clients that need its sockets',
    from: /^(?!cli\/process\/(listen|refuse-broken|metrics-server)\.ts$|cli\/passthrough\/forward\.ts$|src\/(http\/relay|plugins\/contain\/check-reply|gateway\/calls\/rest-client)\.ts$|cli\/doctor\/gateway-mistakes\.ts$|services\/(http\/server|platform\/daemon\/fetch-car|store\/s3-client)\.ts$|plugins\/pay\/upload-client\.ts$|test\/)/,
    never: /^node:https?$/,
  },
  {
    rule: 'SQLite is used by the services’ database, backups, the SQLite backend of the state, and the locks of folders',
    from: /^(?!services\/(database|backup|store\/sqlite-files)\.ts|engines\/sqlite\/rows\.ts|common\/files\/lock-file\.ts)/,
    never: /^npm:@photostructure\/sqlite$/,
  },
  {
    rule: 'the suite for plugins is published: it needs nothing of the tests beside it',
    from: /^test\/suites\//,
    never: /^(test\/(?!suites\/)|plugins\/|examples\/|npm:(?!pino$|zod$))/,
  },
  {
    rule: 'only the command that runs it imports the suite for plugins',
    from: /^(?!cli\/plugins\.ts$|test\/)/,
    never: /^test\//,
    typesToo: true,
  },
]

/** Packages that one place of the product imports, types apart, by that place: a file, or a folder. */
const HOMES: Readonly<Record<string, string>> = {
  '@node-rs/argon2': 'services/platform/password.ts',
  busboy: 'common/multipart.ts',
  commander: 'cli',
  express: 'services/rest/',
  'http-proxy-middleware': 'cli/passthrough/forward.ts',
  'ipaddr.js': 'common/cidr.ts',
  keyv: 'src/state/',
  '@keyv/': 'engines/',
  pino: 'common/log.ts',
  'prom-client': 'common/render-metrics.ts',
  // It may be absent.
  viem: 'services/payment/chain/node.ts',
  xml2js: 'common/xml.ts',
}

/** Commands, which make one request each: the only users of global fetch. */
const GLOBAL_FETCH = ['cli/doctor/gateway-mistakes.ts', 'cli/encryption/age-source.ts', 'cli/endpoint-call.ts']

/** Have a pause of their own that doubles: the home of backoff, and what draws all of the pause at random. */
const DOUBLE = /^(common\/backoff|services\/store\/postgres(-\w+)?)\.ts$/

/** What imitates public gateways, and what assembles the embedded one: the only services that know the word quirk. */
const KNOW_QUIRKS = /^services\/(gateway\/(legacy\/|(assemble|gateway)\.ts$)|(index|worker)\.ts$)/

/** Longest file of the product, lines. */
const MAX_LINES = 350
/** Most columns of a comment. */
const MAX_COLUMNS = 120
/** Most entries in `src/`. */
const MAX_ENTRIES = 15
const PRODUCT = ['common', 'services', 'src', 'engines', 'plugins', 'cli']
const files = sources(...PRODUCT, 'test/suites')
const product = [...files.keys()].filter((file) => !file.startsWith('test/'))
const examples = sources('examples')

/** The entries of the package (package.json), and examples and tests, which run by themselves. */
const ENTRY =
  /^(cli\/index|src\/plugin|(plugins|engines)\/\w+\/index|test\/suites\/plugin-suite|examples\/.*|.*\.test)\.ts$/

/** Types that nobody imports, and that declarations of others need by name; and what Node.js imports by its name. */
const DECLARED = [
  'services/store/database.ts: Table',
  'test/plugins/task/recorded-platform.ts: Recorded',
  'test/services/gateway/counted-sqlite.ts: DatabaseSync',
  'test/services/gateway/statement-hooks.ts: resolve',
]

/** Texts of the source files below these folders, by path. */
function sources(...folders: readonly string[]): Map<string, string> {
  return new Map(
    folders
      .filter((folder) => existsSync(folder))
      .flatMap((folder) =>
        readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) =>
          posix.join(folder, name.replaceAll('\\', '/')),
        ),
      )
      .filter((file) => file.endsWith('.ts'))
      .map((file) => [file, readFileSync(file, 'utf8')]),
  )
}

interface Import {
  readonly target: string
  readonly typeOnly: boolean
}

const IMPORT = /^\s*(?:import|export)\s+(type\s)?(?:[^'"`;]*?\sfrom\s+)?'([^']+)'|\bimport\('([^']+)'\)/gm

function importsOf(file: string, text: string): Import[] {
  return [...text.matchAll(IMPORT)].map(([, type, named, dynamic]) => {
    const specifier = named ?? dynamic ?? ''
    return { target: resolve(file, specifier), typeOnly: type !== undefined }
  })
}

function resolve(file: string, specifier: string): string {
  if (!specifier.startsWith('.')) return specifier.startsWith('node:') ? specifier : `npm:${specifier}`
  return posix.join(posix.dirname(file), specifier).replace(/\.js$/, '.ts')
}

t.ok(files.size > 20, `${files.size} files are looked at`)

for (const { rule, from, never, typesToo } of rules) {
  const broken: string[] = []
  for (const [file, text] of files) {
    if (!from.test(file)) continue
    for (const { target, typeOnly } of importsOf(file, text)) {
      if (never.test(target) && (typesToo || !typeOnly)) broken.push(`${file} imports ${target}`)
    }
  }
  t.same(broken, [], rule)
}

for (const [name, home] of Object.entries(HOMES)) {
  const isIt = (target: string) => target === `npm:${name}` || target.startsWith(`npm:${name.replace(/\/$/, '')}/`)
  const users = product.filter((file) =>
    importsOf(file, files.get(file) ?? '').some(({ target, typeOnly }) => !typeOnly && isIt(target)),
  )
  t.ok(users.length > 0 && users.every((file) => file.startsWith(home)), `${home} alone imports ${name}: ${users}`)
}

t.same(
  [...files]
    .filter(
      ([file, text]) =>
        !DOUBLE.test(file) && /_MS \* 2 \*\*|Math\.min\((2 \* (pause|wait)|(pause|wait) \* 2)\b/.test(text),
    )
    .map(([file]) => file),
  [],
  'pauses that double come from common/backoff.ts',
)

t.same(
  [...files]
    .filter(([file, text]) => /^(services|src|common)\//.test(file) && !KNOW_QUIRKS.test(file) && /quirk/i.test(text))
    .map(([file]) => file),
  [],
  'the core of the embedded gateway knows no quirks: services/gateway/legacy changes what it asks and answers',
)

t.same(
  product.filter((file) => /\bsigningKey\(/.test(files.get(file) ?? '')).sort(),
  // The first signs what leaves the program, the others verify, or sign what this program will verify.
  [
    'common/sign-request.ts',
    'common/sigv4.ts',
    'services/gateway/share-link.ts',
    'src/auth/signatures/signing-keys.ts',
  ],
  'signatures have one home on each side',
)

t.same(
  [...files]
    .filter(([file, text]) => file !== 'cli/config/config.ts' && /\bprocess\.env\b/.test(text))
    .map(([file]) => file),
  [],
  'only cli/config/config.ts reads the environment',
)

t.same(
  [...files].filter(([, text]) => /\bmkdir(Sync)?\([^)]*recursive: true/.test(text)).map(([file]) => file),
  [],
  'folders are made by makeFolders: mkdir of Node.js reports a full disk as ENOENT where it is recursive',
)

t.same(
  [...files].filter(([, text]) => text.split('\n').length > MAX_LINES).map(([file]) => file),
  [],
  `no file is longer than ${MAX_LINES} lines`,
)

t.same(
  [...sources(...PRODUCT, 'test', 'bench'), ...examples].flatMap(([file, text]) =>
    text
      .split('\n')
      .flatMap((line, n) =>
        line.length > MAX_COLUMNS && /^\s*(\/?\*|\/\/) /.test(line.replace('/**', '/*')) && !line.includes('://')
          ? [`${file}:${n + 1}`]
          : [],
      ),
  ),
  [],
  `comments have at most ${MAX_COLUMNS} columns, except for URLs`,
)

t.test('plugins stand on the public interface alone', async (t) => {
  // A plugin that ships is written as a stranger's would be: what it needs of the server, the package exports and
  // docs/plugin-parts.md and docs/plugin-toolkit.md document.
  const own = (file: string) => file.split('/').slice(0, 2).join('/')
  const broken = [...files, ...examples]
    .filter(([file]) => /^(plugins|examples)\/[^/]+\//.test(file))
    .flatMap(([file, text]) => importsOf(file, text).map(({ target }) => ({ file, target })))
    .filter(({ file, target }) => !/^(node:|npm:)/.test(target) && own(target) !== own(file))
  t.same(broken, [], 'they import relative files of their own, dealgate, node: and npm packages')
  t.ok(
    [...files].some(([file, text]) => file.startsWith('plugins/') && text.includes("from 'dealgate/plugin'")),
    'and the plugins that ship are looked at',
  )
})

t.test('rooms', async (t) => {
  const top = readdirSync('src').filter((name) => name !== 'README.md' && name !== 'tsconfig.json')
  t.ok(top.length <= MAX_ENTRIES, `src has ${top.length} entries`)
  t.same(
    top.filter((name) => !name.endsWith('.ts') && !ROOMS.includes(`src/${name}`)),
    [],
    'each folder of src is a room',
  )
  t.same(
    ROOMS.filter((room) => !existsSync(room)),
    [],
    'each room exists',
  )
})

t.test('layers', async (t) => {
  // The command line alone stands on the plugins.
  const heightOf = (target: string) => (target.startsWith('plugins/') ? roomOf('cli/') : roomOf(target))
  const upwards = (file: string, targets: readonly string[]) =>
    targets.filter((target) => heightOf(target) > roomOf(file)).map((target) => `${file} imports ${target}`)
  const rooms = product.filter((file) => roomOf(file) >= 0)
  t.same(
    rooms.flatMap((file) => upwards(file, ownImports(file))),
    [],
    'a room imports from the rooms below it alone, and the command line alone from plugins',
  )
  t.same(upwards('common/a.ts', ['src/server/b.ts', 'common/c.ts']), ['common/a.ts imports src/server/b.ts'])
  const values = rooms
    .filter((file) => file.startsWith('src/api/'))
    .filter((file) => /^(export )?(async )?(function|class|const|let|enum) /m.test(files.get(file) ?? ''))
  t.same(values, [], 'api/ declares types alone')
})

t.test('circles', async (t) => {
  const graph = new Map(product.map((file) => [file, new Set(ownImports(file))]))
  t.ok(graph.size > 400, `${graph.size} files are looked at`)
  t.same(circleIn(graph), [], 'no file imports itself through others, types included')
  const planted = { a: ['b'], b: ['c'], c: ['b'] }
  t.same(circleIn(new Map(Object.entries(planted).map(([from, to]) => [from, new Set(to)]))), ['b', 'c'])
})

t.test('exports', async (t) => {
  const all = new Map([...sources(...PRODUCT, 'test', 'bench'), ...examples])
  const unread = unreadExports(all).filter((name) => !DECLARED.includes(name))
  t.same(unread, [], 'what no other file reads is not exported, the entries of the package apart')
  const planted = new Map([
    ['a/one.ts', "import { two, type Three } from './two.js'\nexport const one = two\n"],
    ['a/two.ts', 'export function two() {}\nexport interface Three {}\nexport const four = 4\nexport { five }\n'],
    ['b/six.ts', "export { one as six } from '../a/one.js'\nconst four = 4\n"],
    ['b/seven.ts', "import * as eight from './eight.js'\n"],
    ['b/eight.ts', 'export const nine = 9\n'],
  ])
  t.same(unreadExports(planted), ['a/two.ts: four', 'a/two.ts: five', 'b/six.ts: six'])
})

/**
 * The exports, as `file: name`, whose names occur in no file that imports from theirs. Those of a file that another
 * imports whole count as read.
 */
function unreadExports(all: ReadonlyMap<string, string>): string[] {
  const readers = new Map<string, Set<string>>()
  const readWhole = new Set<string>()
  for (const [file, text] of all) {
    for (const [, specifier = ''] of text.matchAll(/ \* (?:as \w+ )?from '([^']+)'/g))
      readWhole.add(resolve(file, specifier))
    const words = new Set(text.match(/\w+/g))
    for (const { target } of importsOf(file, text)) {
      const known = readers.get(target)
      if (known) for (const word of words) known.add(word)
      else readers.set(target, new Set(words))
    }
  }
  return [...all].flatMap(([file, text]) =>
    ENTRY.test(file) || readWhole.has(file)
      ? []
      : [...exportedNames(text)].filter((name) => !readers.get(file)?.has(name)).map((name) => `${file}: ${name}`),
  )
}

function* exportedNames(text: string): Generator<string> {
  const declared = /^export (?:abstract |async |declare )*(?:function\*?|class|interface|type|const|let) (\w+)/gm
  for (const [, name = ''] of text.matchAll(declared)) yield name
  for (const [, list = ''] of text.matchAll(/^export (?:type )?\{([^}]*)\}/gm))
    for (const item of list.split(',')) yield* item.trim().match(/\w+$/) ?? []
}

t.test('global fetch', async (t) => {
  const callers = product.filter((file) => usesFetch(files.get(file) ?? ''))
  t.same(callers.sort(), GLOBAL_FETCH, 'all other requests go through a client with bounds')
  for (const text of [
    "const a = await fetch('http://a')",
    "globalThis.fetch('http://a')",
    "globalThis['fetch']('http://a')",
    'const f = fetch',
    'const client = { fetch }',
    'const { fetch: f } = globalThis',
  ])
    t.ok(usesFetch(text), text)
  for (const text of ['this.fetch(a)', "import { fetch } from './client.js'", '// fetch', "const word = 'fetch'"])
    t.notOk(usesFetch(text), text)
})

/** Whether a text names `fetch` itself: not in an import, and not as a member of anything but the global object. */
function usesFetch(text: string): boolean {
  if (!text.includes('fetch')) return false
  const isGlobal = (node: ts.Node) => ts.isIdentifier(node) && ['globalThis', 'global'].includes(node.text)
  const names = (node: ts.Node): boolean => {
    if (ts.isImportDeclaration(node)) return false
    if (ts.isPropertyAccessExpression(node) && !isGlobal(node.expression)) return names(node.expression)
    if (ts.isElementAccessExpression(node) && isGlobal(node.expression))
      return ts.isStringLiteralLike(node.argumentExpression) ? node.argumentExpression.text === 'fetch' : true
    return (ts.isIdentifier(node) && node.text === 'fetch') || ts.forEachChild(node, names) === true
  }
  return names(ts.createSourceFile('a.ts', text, ts.ScriptTarget.Latest))
}

t.test('comments name files that exist', async (t) => {
  const own = [...sources(...PRODUCT, 'test', 'bench').keys()]
  const exists = (name: string) => own.some((file) => file === name || file.endsWith(`/${name}`))
  const named = (text: string) =>
    text
      .split('\n')
      .filter((line) => /^\s*(\/?\*|\/\/)/.test(line))
      .flatMap((line) => line.replace(/\bhttps?:\S+/g, '').match(/[\w-][\w./-]*\.ts\b/g) ?? [])
  const absent = product.flatMap((file) =>
    named(files.get(file) ?? '').flatMap((name) => (exists(name) ? [] : [`${file}: ${name}`])),
  )
  t.same(absent, [])
  t.same(named('/** See `list.ts`. */\n// https://a/b.ts\nconst a = "c.ts"\n * a/b.ts\n'), ['list.ts', 'a/b.ts'])
})

t.test('each room says where to start', async (t) => {
  const plugins = readdirSync('plugins', { withFileTypes: true }).filter((entry) => entry.isDirectory())
  for (const room of [...ROOMS, ...plugins.map(({ name }) => `plugins/${name}`)]) {
    const text = existsSync(`${room}/README.md`) ? readFileSync(`${room}/README.md`, 'utf8') : ''
    const title = `# ${posix.basename(room)}\n`
    t.ok(text.split('\n').length <= 16 && text.startsWith(title), `${room} has a README.md of at most 15 lines`)
    const [start = ''] = /Start with [\s\S]*/.exec(text) ?? []
    const named = [...start.matchAll(/`([\w/-]+\.ts|[\w/-]+\/)`/g)].map(([, name = '']) => `${room}/${name}`)
    t.ok(named.length > 0 && named.every((path) => existsSync(path)), `${room} starts with ${named}`)
  }
  const design = readFileSync('docs/design.md', 'utf8')
  const files = [...design.matchAll(/`((?:common|services|src|plugins|cli|test)\/[\w/.-]+)`/g)].map(
    ([, path = '']) => path,
  )
  t.ok(files.length > 20)
  t.same(
    files.filter((path) => !existsSync(path)),
    [],
    'docs/design.md names files that exist',
  )
  const rooms = [...design.matchAll(/^\| `([\w/]+)` \|/gm)].map(([, name]) => name)
  t.same(rooms, ROOMS, 'docs/design.md lists the rooms in their order')
})

/** The files of ours that a file imports, for types alone too. */
function ownImports(file: string): string[] {
  return importsOf(file, files.get(file) ?? '').flatMap(({ target }) => (files.has(target) ? [target] : []))
}

/** The files of one circle, in their order; empty where there is none. */
function circleIn(graph: ReadonlyMap<string, ReadonlySet<string>>): string[] {
  const done = new Set<string>()
  const path: string[] = []
  const visit = (node: string): string[] => {
    if (path.includes(node)) return path.slice(path.indexOf(node))
    if (done.has(node)) return []
    path.push(node)
    for (const next of graph.get(node) ?? []) {
      const circle = visit(next)
      if (circle.length > 0) return circle
    }
    path.pop()
    done.add(node)
    return []
  }
  for (const node of graph.keys()) {
    const circle = visit(node)
    if (circle.length > 0) return circle
  }
  return []
}

t.test('each test is in a suite', async (t) => {
  const { suites }: { suites: Readonly<Record<string, readonly { files: readonly string[] }[]>> } = await import(
    pathToFileURL('test/suites.mjs').href
  )
  const tests = [...sources('test').keys()].filter((file) => file.endsWith('.test.ts') && !file.includes('/fixtures/'))
  const named = Object.values(suites).flatMap((runs) => runs.flatMap(({ files }) => files))
  const inSuite = (file: string) => named.some((name) => file === name || file.startsWith(`${name}/`))
  t.same(
    tests.filter((file) => !inSuite(file)),
    [],
  )
  t.same(
    named.filter((name) => !tests.some((file) => file === name || file.startsWith(`${name}/`))),
    [],
    'and each name of a suite is that of a test or of a folder of tests',
  )
})

t.test('test/support has one home for each concept', async (t) => {
  const support = sources('test/support')
  const EXPORT = /^export (?:async )?(?:function\*?|class|const) (\w+)/gm
  const names = [...support.values()].flatMap((text) => [...text.matchAll(EXPORT)].map(([, name]) => name))
  t.ok(names.length > 50, `${names.length} exports are compared`)
  t.same(
    names.filter((name, n) => names.indexOf(name) !== n),
    [],
    'each exported name exists once',
  )
  const copy =
    /^(?:async )?(?:function|const) (until|sign|signHead|signedRequest|startDealgate|startInProcess|runCli|keptLog|temporaryFolder|sha256|md5)\b/m
  const copies = [...sources('test')]
    .filter(([file, text]) => !/^test\/(support|suites)\//.test(file) && copy.test(text))
    .map(([file, text]) => `${file} declares ${copy.exec(text)?.[1]}`)
  t.same(copies, [], 'no test declares a second version of a helper')
  const listed = /^test\/support\/\n([\s\S]*?)```/m.exec(readFileSync('CONTRIBUTING.md', 'utf8'))?.[1] ?? ''
  t.same(
    [...listed.matchAll(/^ {2}(\S+\.ts) +\S/gm)].map(([, name]) => `test/support/${name}`).sort(),
    [...support.keys()].sort(),
    'CONTRIBUTING has one line for each file',
  )
})
