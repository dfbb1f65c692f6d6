import { readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join, relative, resolve, sep } from 'node:path'
import { packageFolder, version } from '../common/files/package-folder.js'
import { nameProblem } from '../src/plugins/check-plugins.js'
import { Failure } from './command.js'
import { type Config, ConfigError } from './config/config.js'

interface NewFlags {
  /** An npm version specifier: a range of versions, or `file:` and a folder. */
  readonly dealgate?: string
}

/** `dealgate plugin new`: creates a working plugin in a new folder. Never overwrites a file. */
export async function newPlugin(_config: Config, name: string, { dealgate }: NewFlags): Promise<void> {
  const problem = nameProblem(name)
  if (problem) throw new ConfigError([`${name}: a plugin ${problem}`])
  const folder = `dealgate-plugin-${name}`
  try {
    await mkdir(folder)
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') throw cause
    throw new Failure(`There is a ${resolve(folder)} already: remove it, or choose another name.`, { cause })
  }
  for (const [file, content] of Object.entries(pluginTemplate(name, dealgate ?? thisDealgate(resolve(folder)))))
    await writeFile(join(folder, file), content, { flag: 'wx' })
  process.stdout.write(`${folder} is written. Next:
  cd ${folder}
  npm install
  npm test
  npx dealgate serve --plugin .
`)
}

/**
 * The specifier of this package for a package.json in `folder`: a version if npm has installed it from a registry, else
 * a folder. A registry may not have the code of a clone or tarball, or may have another author's package of that name.
 */
function thisDealgate(folder: string): string {
  const own = packageFolder()
  return isFromRegistry(own) ? `^${version()}` : `file:${relative(folder, own).split(sep).join('/')}`
}

/**
 * Reads the hidden lockfile that npm writes into the folder it installs into:
 * https://docs.npmjs.com/cli/configuring-npm/package-lock-json#hidden-lockfiles
 */
function isFromRegistry(own: string): boolean {
  try {
    const { packages } = JSON.parse(readFileSync(join(own, '..', '.package-lock.json'), 'utf8'))
    const noted = packages['node_modules/dealgate']
    if (noted === undefined || noted.link === true) return false
    // With `omit-lockfile-registry-resolved`, npm omits the address of a registry, but not of a file or repository.
    return noted.resolved === undefined || /^https?:.*\/-\/dealgate-[^/]+\.tgz$/.test(noted.resolved)
  } catch {
    return false
  }
}

function pluginTemplate(name: string, dealgate: string): Readonly<Record<string, string>> {
  return {
    'package.json': packageJson(name, dealgate),
    'index.js': indexJs(name),
    'index.test.js': testJs(name),
    'README.md': readme(name),
    '.gitignore': 'node_modules/\ndealgate-data/\n',
  }
}

function packageJson(name: string, dealgate: string): string {
  const content = {
    name: `dealgate-plugin-${name}`,
    version: '0.1.0',
    description: `The plugin ${name} of dealgate.`,
    keywords: ['dealgate-plugin'],
    type: 'module',
    exports: './index.js',
    files: ['index.js'],
    scripts: { test: 'node --test', start: 'dealgate serve --plugin .' },
    dependencies: { dealgate },
  }
  return `${JSON.stringify(content, null, 2)}\n`
}

function indexJs(name: string): string {
  return `// @ts-check
import { defineCall, definePlugin, z } from 'dealgate/plugin'

/** @param {string} word */
const getGreeting = (word) =>
  defineCall({
    name: 'GetGreeting',
    source: 'README.md#getgreeting',
    summary: 'Greets a person by name.',
    access: 'signed',
    on: { method: 'GET', resource: 'service', path: '/-/${name}/v1/greetings/{Name}' },
    result: z.object({ Text: z.string() }),
    answer: async ({ request }) => ({ Text: \`\${word}, \${request.params.Name}!\` }),
  })

const options = z.object({ word: z.string().default('Hello').describe('The greeting.') })

export default definePlugin({
  name: '${name}',
  summary: 'Greets people.',
  options,
  create: ({ word }) => ({ operations: [getGreeting(word)] }),
})
`
}

function testJs(name: string): string {
  return `import test from 'node:test'
import { testPlugin } from 'dealgate/testing'
import plugin from './index.js'

test('${name} keeps the contract of plugins', (t) => testPlugin(t, plugin))
`
}

function readme(name: string): string {
  return `# dealgate-plugin-${name}

A plugin of [dealgate](https://www.npmjs.com/package/dealgate). It greets people.

\`\`\`sh
npm install
npm test         # the contract that every plugin keeps
npm start        # dealgate serve --plugin .
\`\`\`

With the key pair that the start prints:

\`\`\`sh
curl --aws-sigv4 aws:amz:us-east-1:s3 -u "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" http://127.0.0.1:9000/-/${name}/v1/greetings/world
\`\`\`

In the config file of dealgate, with its options:

\`\`\`json
{ "plugins": [{ "use": "dealgate-plugin-${name}", "options": { "word": "Good morning" } }] }
\`\`\`

## GetGreeting

\`GET /-/${name}/v1/greetings/{Name}\` answers \`{"Text": "Hello, world!"}\`, or the same as XML with \`format=xml\`.
`
}
