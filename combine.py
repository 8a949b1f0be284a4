import json
from confide_lab.benchmarks.truth import judge
K=("case","method","n","mu","relation")
rows={tuple(r[k] for k in K):r for p in ("/tmp/scr-k12/jout/truth.json","/tmp/scr-k12/jout3/truth.json") for r in json.load(open(p))}
rows=[r for r in rows.values() if r["method"]=="logistic"]
print(len(rows), {r.get("commit") for r in rows})
judge.judge(rows)
for lo,hi in ((.8,1.01),(.85,1.01),(.9,1.01)):
    own=[r for r in rows if r.get("expected") is not None and lo<=r["expected"]<hi]
    main=[r["case"] for r in own if r["n"]==10000 and r["mu"]==1 and r["relation"]=="add-remove" and len(r["coefficients"])<=10]
    print(lo,len(own),"missed",sum(r["answered"]<.9 for r in own), "mean ok", sum(r["status"].get("ok",0) for r in own)/len(own), "sets",main)
