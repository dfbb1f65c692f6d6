import { collected } from './command.js'
import { type OptionName, optionNames } from './config/config.js'
import { type CommandDeclaration, type Flag, named } from './declaration.js'
import { encryptionCommands } from './encryption/commands.js'
import { printEnvironment } from './running.js'
import { stateCommands } from './state-declarations.js'
import { walletCommands } from './wallet-declarations.js'

const SERVICES = named(
  /^(data|region|portBase|gateway(Host|Port|Quirks|PublicUrl|CarGib)|bodies\w*|database|servicesMaxConnections|platform\w+|payment(?!Url$)\w+|brand\w+|network\w+|kuboApi|metrics(Host|Port)|log(Level|Format)|print)$/,
)
const ENDPOINT: readonly OptionName[] = ['host', 'port', 'portBase', 'region', 'accessKey', 'secretKey']
const PRESIGN: readonly OptionName[] = [...ENDPOINT, 'data']
const WATCH: readonly OptionName[] = [...PRESIGN, 'print', 'logLevel']
const LOGIN = named(
  /^(data|(platform|gateway)(Url|Host|Port)|host|port|portBase|region|brand\w+|print|logLevel)$/,
).filter((name) => name !== 'gatewayUrl')
const PLUGINS: readonly OptionName[] = ['plugins', 'logLevel']
const KEYS: readonly OptionName[] = ['credentialsFile', 'data', 'auditLog', 'print', 'logLevel']
const ACCOUNTS: readonly OptionName[] = [...KEYS, 'database']
const BACKUP = named(
  /^(data|state|staging|credentialsFile|sealingKeyFile|encryptionKeys|gateway(Url|AccessKey|SecretKey)|p(latform|ayment)Url|kuboApi|bodies|database|print|logLevel)$/,
)
const RESTORE: readonly OptionName[] = ['data', 'print', 'logLevel']

const ENDPOINT_URL: Flag = [
  '--endpoint-url <url>',
  'where the S3 endpoint is (default: AWS_ENDPOINT_URL, or the server that runs with --data)',
]
const PROFILE: Flag = [
  '--profile <name>',
  'sign with this profile of aws-cli (default: AWS_*, or the key pair of --data)',
]
/** Where accounts are that are not in a data folder. */
const ACCOUNTS_ELSEWHERE = ['database', 'gatewayUrl', 'platformUrl'] as const
const ACCOUNT = ['<access-key>', 'as `dealgate account list` shows it'] as const
const USER = ['<e-mail>', 'address that the user signs in with'] as const

function watching(what: string): readonly Flag[] {
  return [
    ['--watch', `repeat until no ${what} is pending; exit code 1 if one has failed meanwhile`],
    ['--interval <seconds>', 'pause between two looks of --watch, 1 to 3600', '2'],
    ['--limit <number>', `the newest ${what}s, 1 to 1000`, '100'],
    ENDPOINT_URL,
    PROFILE,
  ]
}

const keys = () => import('./keys/key-commands.js')
const accounts = () => import('./account-commands.js')
const users = () => import('./user-commands.js')
const plugins = () => import('./plugins.js')

export const GROUPS: Readonly<Record<string, string>> = {
  keys: 'add, list and remove S3 key pairs with individual rights, and print variables with one',
  account: 'add, list and remove accounts of the embedded services, and change their keys; requires no restart',
  plugin: 'list plugins, create one, and check a plugin against the contract',
  encryption: 'list, add, replace and print the keys of encrypted objects',
  state: 'decide how to continue with a state store that has lost its records',
  wallet: 'make a wallet for the embedded storage payment API, fund it, and pay for uploads',
}

export const commands: readonly CommandDeclaration[] = [
  {
    name: 'serve',
    help: 'start the S3 endpoint, with the embedded services unless --gateway-url names another gateway',
    options: optionNames,
    run: async () => (await import('./serve/serve.js')).serveUntilSignal,
  },
  {
    name: 'services',
    help: 'start the embedded services alone: the gateway, the task platform and the storage payment API',
    options: SERVICES,
    run: async () => (await import('./serve/services.js')).servicesUntilSignal,
  },
  {
    name: 'presign',
    help: 'print a presigned URL',
    options: PRESIGN,
    operand: ['<url>', 's3://bucket/key'],
    flags: [
      ['--expires <seconds>', 'how long the URL is valid, 1 to 604800 (7 days)', '3600'],
      ['--method <method>', 'GET, HEAD, PUT or DELETE', 'GET'],
      [
        '--endpoint-url <url>',
        'where clients reach the S3 endpoint (default: AWS_ENDPOINT_URL, or the server that runs with --data)',
      ],
      [
        '--profile <name>',
        'sign with this profile of aws-cli, which also names endpoint and region (default: AWS_*, or the key pair of --data)',
      ],
    ],
    run: async () => (await import('./presign.js')).presign,
  },
  {
    name: 'deals',
    help: 'list deals that were made through a running server, with their progress',
    options: WATCH,
    operand: ['[bucket]', 'the deals of this bucket and its objects alone'],
    flags: watching('deal'),
    after: 'With --print json: a line of JSON for each table, with the documents of deals and jobs.',
    run: async () => (await import('./watch-deals.js')).showDeals,
  },
  {
    name: 'jobs',
    help: 'list jobs of a running server, with their progress',
    options: WATCH,
    flags: [...watching('job'), ['--of-plugin <name>', 'the jobs of this plugin alone']],
    after: 'With --print json: a line of JSON for each table, with the documents of the jobs.',
    run: async () => (await import('./watch-jobs.js')).showJobs,
  },
  {
    name: 'login',
    help: 'sign in at the task platform, and write a profile for aws-cli',
    options: LOGIN,
    flags: [
      ['--email <address>', 'address to sign in with (default: ask for it)'],
      ['--password-stdin', 'read the password from the first line of standard input (default: ask for it)'],
      ['--profile <name>', 'profile of aws-cli to write (default: dealgate)'],
      ENDPOINT_URL,
      ['--gateway <url>', 'where the gateway is (default: that of the server that runs with --data)'],
      ['--no-aws', 'leave the files of aws-cli alone'],
      ['--force', 'replace other credentials in the profile'],
    ],
    after:
      'The profile has temporary credentials for 12 hours. Sign in again when they have expired.\nExample: the first user of a server on this machine:\n  dealgate login --email owner@localhost\n  aws --profile dealgate s3 ls',
    run: async () => (await import('./login.js')).login,
  },
  {
    name: 'doctor',
    help: 'check options, data folder, gateway and clock, also of a running server, and say what to do',
    options: optionNames,
    flags: [
      ['--endpoint-url <url>', 'check a server elsewhere alone: whether it is ready, its clock, the key pair'],
      ['--verify', 'read all bodies of the embedded gateway, and list those that are lost or damaged'],
      ['--report', 'print also versions and options, without secrets, to paste in a report of a problem'],
    ],
    run: async () => (await import('./doctor/doctor.js')).doctor,
  },
  {
    name: 'backup',
    help: 'copy the data folder to a new folder in <folder>, while a server uses it',
    options: BACKUP,
    operand: ['<folder>', 'the folder of all backups; files that have not changed are linked to the backup before'],
    flags: [
      ['--keep <number>', 'remove the oldest backups beyond this number, 1 to 100000 (default: keep all)'],
      ['--with-keys', 'copy the keys of encrypted objects, too (default: keep them apart from the objects)'],
      ['--verify', 'read the files of the backup before again, and copy damaged ones anew (default: link them)'],
    ],
    after: 'Use the options of `serve`, so that the backup says what it does not contain.',
    run: async () => (await import('./backup/backup.js')).backup,
  },
  {
    name: 'restore',
    help: 'fill an empty data folder from a backup, and check every file',
    options: RESTORE,
    operand: ['<backup>', 'a backup, or the folder of all backups for the newest one'],
    flags: [['--check', 'check the backup and write nothing']],
    run: async () => (await import('./backup/restore.js')).restore,
  },
  {
    name: 'keys add',
    help: 'add a key pair and print it; the secret is not shown again',
    options: KEYS,
    inData: ['credentialsFile'],
    flags: [
      [
        '--right <access:bucket[/prefix]>',
        'grant read, write or readwrite for a bucket (a final `*` matches any suffix) or a prefix in it; may be repeated; default: all rights of the account',
        collected,
      ],
      [
        '--allow <plugin:call>',
        'with --right: allow a plugin call, such as deal:CreateObjectDeal (a final `*` matches any suffix), in addition to calls that only read; may be repeated',
        collected,
      ],
      ['--access-key-id <id>', 'use an existing pair, with --secret-access-key (default: generate one)'],
      ['--secret-access-key <secret>', 'its secret, or - for the next line of standard input'],
      ['--account-access-key <id>', 'the gateway account it acts as (default: that of dealgate)'],
      ['--account-secret-key <secret>', 'the secret of that account, or - for the next line of standard input'],
    ],
    after:
      'Example: read the photos of 2024 and upload new ones:\n  dealgate keys add --right read:photos/2024/ --right write:photos/inbox/',
    changes: () => true,
    run: async () => (await keys()).addKey,
  },
  {
    name: 'keys list',
    help: 'list the key pairs and their rights, without secrets',
    options: KEYS,
    inData: ['credentialsFile'],
    run: async () => (await keys()).listKeys,
  },
  {
    name: 'keys env',
    help: 'print variables for aws-cli, SDKs and curl: eval "$(dealgate keys env)"',
    options: PRESIGN,
    run: () => printEnvironment,
  },
  {
    name: 'keys remove',
    help: 'remove a key pair: it is refused from then on, in presigned URLs too',
    options: KEYS,
    inData: ['credentialsFile'],
    operand: ['<access-key-id>', 'as `dealgate keys list` shows it'],
    changes: () => true,
    run: async () => (await keys()).removeKey,
  },
  {
    name: 'account add',
    help: 'add an account and print its keys; the secret is not shown again',
    options: ACCOUNTS,
    inData: ACCOUNTS_ELSEWHERE,
    flags: [
      ['--name <text>', 'display name, at most 128 characters'],
      ['--email <address>', 'add a user of the task platform in its place, whose account is made at the first login'],
      ['--password <password>', 'with --email: its password, or - for the next line of standard input'],
      ['--account-access-key <id>', 'use an existing pair, with --account-secret-key (default: generate one)'],
      ['--account-secret-key <secret>', 'its secret, or - for the next line of standard input'],
    ],
    changes: () => true,
    run: async () => (await accounts()).addAccount,
  },
  {
    name: 'account list',
    help: 'list the accounts and their buckets, without secrets',
    options: ACCOUNTS,
    inData: ACCOUNTS_ELSEWHERE,
    run: async () => (await accounts()).listAccounts,
  },
  {
    name: 'account remove',
    help: 'remove an account; refused while it owns buckets',
    options: ACCOUNTS,
    inData: ACCOUNTS_ELSEWHERE,
    operand: ACCOUNT,
    changes: () => true,
    run: async () => (await accounts()).removeAccount,
  },
  {
    name: 'account rotate',
    help: 'make a new secret key for an account, print it and update the credentials file',
    options: ACCOUNTS,
    inData: ACCOUNTS_ELSEWHERE,
    operand: ACCOUNT,
    changes: () => true,
    run: async () => (await accounts()).rotateAccount,
  },
  {
    name: 'account quota',
    help: 'show what an account stores and may store, and change the latter',
    options: ACCOUNTS,
    inData: ACCOUNTS_ELSEWHERE,
    operand: ACCOUNT,
    flags: [
      ['--bytes <number>', 'most bytes in all of its buckets, or none'],
      ['--objects <number>', 'most objects in all of its buckets, or none'],
      ['--uploads <number>', 'most multipart uploads under way, or none'],
    ],
    changes: (_, flags) => Object.keys(flags as object).some((name) => ['bytes', 'objects', 'uploads'].includes(name)),
    run: async () => (await accounts()).accountQuota,
  },
  {
    name: 'account password',
    help: 'give a user of the task platform a new password, and end its sign-ins; owner@localhost is the first user',
    options: ACCOUNTS,
    inData: ACCOUNTS_ELSEWHERE,
    operand: USER,
    flags: [
      ['--password <password>', 'the password, or - for the next line of standard input (default: generate one)'],
    ],
    changes: () => true,
    run: async () => (await users()).changePassword,
  },
  {
    name: 'account api-keys',
    help: 'list the API keys of a user of the task platform, without secrets',
    options: ACCOUNTS,
    inData: ACCOUNTS_ELSEWHERE,
    operand: USER,
    flags: [['--revoke <api-key>', 'revoke this key, or `all`; tokens that were issued for it die with it']],
    changes: (_, flags) => 'revoke' in (flags as object),
    run: async () => (await users()).userApiKeys,
  },
  {
    name: 'plugin list',
    help: 'list the plugins that run with these options, and the other built-in ones',
    options: PLUGINS,
    flags: [['--explain', 'also show their options and operations']],
    run: async () => (await plugins()).listPlugins,
  },
  {
    name: 'plugin new',
    help: 'create a working plugin with its test in the new folder dealgate-plugin-<name>',
    options: ['logLevel'],
    operand: ['<name>', 'lower-case letters, digits and -; part of the paths that the plugin serves'],
    flags: [
      [
        '--dealgate <version>',
        'version range of dealgate in its package.json, or file: and a folder (default: this one)',
      ],
    ],
    run: async () => (await import('./plugin-new.js')).newPlugin,
  },
  {
    name: 'plugin check',
    help: 'start a server with a plugin in a temporary folder, and check it',
    options: PLUGINS,
    operand: ['<plugin>', 'the name of a package or a built-in plugin, or a path that starts with . or /'],
    flags: [['--options <json>', 'its options (default: those in the config file)']],
    run: async () => (await plugins()).checkPluginAt,
  },
  ...encryptionCommands,
  ...stateCommands,
  ...walletCommands,
]
