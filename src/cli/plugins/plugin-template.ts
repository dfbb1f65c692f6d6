/** The files of a new plugin, by name. */
export function pluginTemplate(name: string, dealgate: string): Readonly<Record<string, string>> {
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
import { defineCall, definePlugin, z } from 'dealgate'

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
