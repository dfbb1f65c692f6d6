// The part of xml2js that dealgate uses. The whole package also loads xmlbuilder.
module.exports = { Parser: require('xml2js/lib/parser').Parser }
