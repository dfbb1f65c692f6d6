import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import t from 'tap'

/** Who may import what. Dependencies point one way, and one library is used in one place; the reasons stand beside each rule. */
interface Rule {
  readonly rule: string
  /** Files that the rule is about. */
  readonly from: RegExp
  /** What they must not import: `src/xml.ts` for our own files, `npm:xml2js` for packages. */
  readonly never: RegExp
  /** `import type` leaves nothing at run time and is allowed unless this is set. */
  readonly typesToo?: true
}

const rules: readonly Rule[] = [
  {
    rule: 'common/ is for everybody and knows nobody',
    from: /^src\/common\//,
    never: /^(src\/(?!common\/)|plugins\/)/,
    typesToo: true,
  },
  {
    rule: 'reading, authenticating and answering a request know nothing of gateway and operations',
    from: /^src\/(request|auth|response|errors)\//,
    never: /^src\/(gateway|operations|store|state|services|cli)\b|^plugins\//,
  },
  {
    rule: 'the services know the proxy only over HTTP',
    from: /^src\/services\//,
    never: /^(src\/(?!services\/|common\/|log\.ts)|plugins\/)/,
    typesToo: true,
  },
  {
    rule: 'the proxy knows the services only over HTTP; the command line starts both',
    from: /^(src\/(?!services\/|cli|config|index\.ts)|plugins\/)/,
    never: /^src\/services\//,
    typesToo: true,
  },
  {
    rule: 'nothing but the entry points needs the command line or its options',
    from: /^src\/(?!cli|config)/,
    never: /^src\/(cli|config)\b/,
    typesToo: true,
  },
  {
    rule: 'calls to others go through gateway/, a plugin’s own client, the one for webhooks or the one for Kubo nodes',
    from: /^(?!src\/gateway\/|src\/notifications\/webhook-client\.ts$|src\/services\/network\/kubo\/kubo-client\.ts$|plugins\/[^/]+\/[^/]+-client\.ts)/,
    never: /^npm:undici$/,
  },
  { rule: 'XML is read in xml.ts', from: /^(?!src\/xml\.ts)/, never: /^npm:xml2js$/ },
  {
    rule: 'SQLite is the business of the services’ database, the Keyv adapter, and the locks on their folders',
    from: /^(?!src\/services\/(database|folder-lock)\.ts|src\/state\/(sqlite-[a-z]+|folder-lock)\.ts)/,
    never: /^npm:@photostructure\/sqlite$/,
  },
  { rule: 'Keyv stays behind state/', from: /^(?!src\/state\/)/, never: /^npm:(keyv|@keyv\/.*)$/ },
  { rule: 'Express is the business of serve.ts', from: /^(?!src\/serve\.ts)/, never: /^npm:express$/ },
  {
    rule: 'the pass-through of the gateway’s own paths is the business of passthrough/',
    from: /^(?!src\/passthrough\/forward\.ts)/,
    never: /^npm:http-proxy-middleware$/,
  },
  { rule: 'forms are parsed in form/', from: /^(?!src\/form\/)/, never: /^npm:busboy$/ },
  { rule: 'commander is the business of the command line', from: /^(?!src\/cli)/, never: /^npm:commander$/ },
  {
    rule: 'the suite for plugins is published: it needs nothing of the tests beside it',
    from: /^test\/suites\//,
    never: /^(test\/(?!suites\/)|plugins\/|examples\/|npm:(?!pino$|zod$))/,
  },
  {
    rule: 'nothing needs the suite for plugins but the command that runs it',
    from: /^(src\/(?!cli\/plugin-check\.ts)|plugins\/)/,
    never: /^test\//,
    typesToo: true,
  },
  { rule: 'pino is the business of log.ts', from: /^(?!src\/log\.ts|test\/)/, never: /^npm:pino$/ },
]

/** Longest file of the product, lines. */
const MAX_LINES = 300

const files = new Map(
  ['src', 'plugins', 'test/suites']
    .filter((folder) => existsSync(folder))
    .flatMap((folder) =>
      readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) =>
        posix.join(folder, name.replaceAll('\\', '/')),
      ),
    )
    .filter((file) => file.endsWith('.ts'))
    .map((file) => [file, readFileSync(file, 'utf8')]),
)

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

t.same(
  [...files].filter(([file, text]) => file !== 'src/config.ts' && /\bprocess\.env\b/.test(text)).map(([file]) => file),
  [],
  'only config.ts reads the environment',
)

t.same(
  [...files].filter(([, text]) => text.split('\n').length > MAX_LINES).map(([file]) => file),
  [],
  `no file is longer than ${MAX_LINES} lines`,
)

t.test('the reader of imports sees each form', (t) => {
  const text = `import a from 'a'\nimport type { B } from './b.js'\nimport {\n  c,\n} from '../c.js'\nexport * from 'd'\nimport 'e'\nconst f = await import('f')\n`
  t.same(importsOf('src/x/y.ts', text), [
    { target: 'npm:a', typeOnly: false },
    { target: 'src/x/b.ts', typeOnly: true },
    { target: 'src/c.ts', typeOnly: false },
    { target: 'npm:d', typeOnly: false },
    { target: 'npm:e', typeOnly: false },
    { target: 'npm:f', typeOnly: false },
  ])
  t.end()
})
