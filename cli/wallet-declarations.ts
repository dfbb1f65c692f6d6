import { type CommandDeclaration, type Flag, named } from './declaration.js'

const WALLET = named(/^(data|database|portBase|payment(Url|Host|Port|Network)|auditLog|print|logLevel)$/)
const LINK = named(/^(host|port|region|accessKey|secretKey)$/)

const WALLET_FILE: Flag = [
  '--wallet-file <file>',
  'keystore file of the wallet (default: wallet.json in the data folder)',
]
const WALLET_PASSWORD: Flag = ['--password <text>', 'opens the file, or - for the next line of standard input']
const WALLET_ADDRESS: Flag = ['--address <address>', 'address of a wallet (default: that of the keystore file)']

const wallets = () => import('./wallet-commands.js')

export const walletCommands: readonly CommandDeclaration[] = [
  {
    name: 'wallet create',
    help: 'make a wallet in a new keystore file, which the password seals',
    options: WALLET,
    inData: ['walletFile'],
    flags: [WALLET_FILE, WALLET_PASSWORD],
    changes: () => true,
    run: async () => (await wallets()).createWallet,
  },
  {
    name: 'wallet fund',
    help: 'give a wallet coins of the embedded ledger, which have no value',
    options: WALLET,
    inData: ['database', 'gatewayUrl', 'paymentUrl'],
    operand: ['<amount>', 'in stable coins, such as 12.5'],
    flags: [
      WALLET_FILE,
      WALLET_ADDRESS,
      ['--reference <text>', 'a word by which a repetition is known, and gives nothing again (default: a new one)'],
    ],
    changes: () => true,
    run: async () => (await wallets()).fundWallet,
  },
  {
    name: 'wallet balance',
    help: 'show the coins of a wallet in the embedded ledger',
    options: WALLET,
    inData: ['database', 'gatewayUrl', 'paymentUrl'],
    flags: [WALLET_FILE, WALLET_ADDRESS],
    run: async () => (await wallets()).walletBalance,
  },
  {
    name: 'wallet link',
    help: 'sign the wallet in at an S3 endpoint, for its key pair',
    options: [...WALLET, ...LINK],
    flags: [
      WALLET_FILE,
      WALLET_PASSWORD,
      ['--endpoint-url <url>', 'the S3 endpoint (default: AWS_ENDPOINT_URL, or the server that runs with --data)'],
      ['--profile <name>', 'link to the key pair of this profile of aws-cli (default: AWS_*, or that of --data)'],
    ],
    changes: () => true,
    run: async () => (await wallets()).linkToEndpoint,
  },
  {
    name: 'wallet pay',
    help: 'lock the payment for an upload of the wallet',
    options: WALLET,
    operand: ['<upload>', 'its number, source_file_upload_id'],
    flags: [
      WALLET_FILE,
      WALLET_PASSWORD,
      ['--amount <amount>', 'in stable coins (default: the least amount, which the service names)'],
      ['--max-amount <amount>', 'pays the least amount up to this one without a question'],
      ['--yes', 'pays any least amount without a question'],
    ],
    changes: () => true,
    run: async () => (await wallets()).payUpload,
  },
]
