// How the search ranks: Sphinx's own points, and some for a page of a formula, which is what most questions are after.
var Scorer = {
  score: ([docname, title, anchor, descr, score]) => score + (docname.startsWith("formulas/") ? 4 : 0),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
