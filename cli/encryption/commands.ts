import { type CommandDeclaration, named } from '../declaration.js'

const KEYS = named(/^(data|encryption(Keys|Recipient)|auditLog|print|logLevel)$/)

const keys = () => import('./key-commands.js')

export const encryptionCommands: readonly CommandDeclaration[] = [
  {
    name: 'encryption list',
    help: 'list the keys of encrypted objects, without secrets: the newest encrypts, all decrypt',
    options: KEYS,
    inData: ['encryptionKeys'],
    run: async () => (await keys()).listKeys,
  },
  {
    name: 'encryption rotate',
    help: 'make a new key, which encrypts from now on; the others still decrypt',
    options: KEYS,
    inData: ['encryptionKeys'],
    flags: [['--name <name>', 'the key is that of a name, for aws:kms (default: the key of the server)']],
    changes: () => true,
    run: async () => (await keys()).rotateKeys,
  },
  {
    name: 'encryption add',
    help: 'add keys of another file, such as that of another server: they decrypt, and the newest stays',
    options: KEYS,
    operand: ['<file>', 'identities of age, or - for standard input'],
    changes: () => true,
    run: async () => (await keys()).addKeys,
  },
  {
    name: 'encryption export',
    help: 'print all keys, with their secrets, as `age -d -i` reads them: keep them in a safe place',
    options: KEYS,
    inData: ['encryptionKeys'],
    changes: () => true,
    run: async () => (await keys()).exportKeys,
  },
  {
    name: 'encryption rewrap',
    help: 'store the encrypted objects of a bucket again with headers for the keys of today; their content stays',
    options: named(/^(data|host|port|region|accessKey|secretKey|print|logLevel)$/),
    operand: ['<bucket>', 'at a running server'],
    flags: [
      ['--prefix <text>', 'only objects whose keys begin with it'],
      ['--endpoint-url <url>', 'the S3 endpoint (default: AWS_ENDPOINT_URL, or the server that runs with --data)'],
      ['--profile <name>', 'sign with this profile of aws-cli (default: AWS_*, or the key pair of --data)'],
    ],
    run: async () => (await import('./rewrap.js')).rewrapObjects,
  },
  {
    name: 'encryption identity',
    help: 'print a key of a client (SSE-C) as an identity of age, which opens its objects',
    options: named(/^(print|logLevel)$/),
    operand: ['<key>', '32 bytes in base64, or - for standard input, which no list of processes shows'],
    run: async () => (await keys()).printIdentity,
  },
  {
    name: 'encryption recipients',
    help: 'print the public keys for which new objects are encrypted',
    options: KEYS,
    inData: ['encryptionKeys'],
    run: async () => (await keys()).listRecipients,
  },
  {
    name: 'decrypt',
    help: 'decrypt a stored object, as the gateway or a provider has it, with the keys of the data folder',
    options: named(/^(data|encryptionKeys|print|logLevel)$/),
    operand: [
      '<source>',
      'an age file or a CAR with one: a file, a URL such as https://.../ipfs/<cid>, or - for standard input',
    ],
    flags: [
      ['--output <file>', 'the file to write, which must not exist (default: standard output)'],
      ['--path <names>', 'the file in a CAR with a directory, with / between the names'],
      ['--unpack', 'write the age file as it is, such as that of a CAR: do not decrypt it'],
      ['--print-age-command', 'print the command that opens it with the program age, and do nothing'],
    ],
    after:
      'The program age does the same, without dealgate:\n  age -d -i dealgate-data/encryption.keys -o photo.jpg object.age',
    run: async () => (await import('./decrypt.js')).decrypt,
  },
]
